"""A dump of a database whose agents are at work, restored under another name, is a mesh that goes on."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh.store import roles, schema
from agentmesh.store.schema import SchemaState
from tests.fixtures import server
from tests.fixtures.engine import Rig, call, do, say, until, when
from tests.fixtures.invariants import violations

NAMES = ["thinks", "works", "waits", "ended"]


def program(name: str, *options: str) -> None:
    done = subprocess.run([server.embedded().binary(name), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def dump_custom(url: str, file: Path) -> None:
    program("pg_dump", "--format=custom", f"--file={file}", f"--dbname={url}")


def restore_custom(url: str, file: Path) -> None:
    program("pg_restore", "--exit-on-error", "--jobs=2", f"--dbname={url}", str(file))


def dump_plain_without_roles(url: str, file: Path) -> None:
    program("pg_dump", "--no-owner", "--no-privileges", f"--file={file}", f"--dbname={url}")


def restore_plain(url: str, file: Path) -> None:
    program("psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--file={file}", f"--dbname={url}")


@pytest.mark.parametrize(
    ("dump", "restore"), [(dump_custom, restore_custom), (dump_plain_without_roles, restore_plain)]
)
def test_a_dump_of_a_busy_mesh_is_restored_elsewhere_and_its_agents_go_on(
    rig: Rig, empty_database_url: str, tmp_path: Path, dump: Callable[..., None], restore: Callable[..., None]
):
    answered = threading.Event()
    script(rig, answered)
    worker = rig.worker()
    rig.prompt()
    rig.until(lambda: rig.waits("root") and rig.waits("waits") and rig.status("ended") == "idle", "the work")
    rig.until_asked("thinks")
    rig.until((rig.workdir / "started").exists, "the command")

    dump(rig.url, tmp_path / "dump")

    # Nobody noticed.
    answered.set()
    (rig.workdir / "go").touch()
    rig.rest()
    assert rig.last() == ("all have reported", None)
    worker.close()

    restore(empty_database_url, tmp_path / "dump")
    with psycopg.connect(empty_database_url, autocommit=True) as copy:
        assert schema.state(copy) is SchemaState.CURRENT
        assert roles.settle(copy) == []
        assert_roles_have_their_rights(copy)
        # As at the moment of the dump, not later: whoever worked is at work, and its worker is not there.
        assert violations(copy) == []
        status = "select name, status from agentmesh.agents"
        assert dict(copy.execute(status).fetchall()) == {**dict.fromkeys(("root", *NAMES), "running"), "ended": "idle"}
        assert_ids_go_on(copy)
        assert_it_ends_there_too(rig, copy, empty_database_url)


def script(rig: Rig, answered: threading.Event) -> None:
    """Let one child be inside a model call, one inside a command, one inside a wait, and one have ended."""
    rig.script(
        "root",
        do(*(call("fork", name=name, prompt="work") for name in NAMES)),
        do(call("wait", timeout=600, from_agents=NAMES)),
        say("all have reported"),
    )
    command = "touch started; while ! [ -e go ]; do sleep 0.05; done; echo ran >> log"
    rig.script("thinks", when(answered, do(call("send", to="waits", message="go on"))), say("thought"))
    rig.script("works", do(call("bash", command=command)), say("worked"))
    rig.script("waits", do(call("wait", timeout=600)), say("waited"))
    rig.script("ended", say("done"))


def assert_it_ends_there_too(rig: Rig, copy: psycopg.Connection, url: str) -> None:
    worker = rig.worker(url=url)
    busy = "select count(*) from agentmesh.agents where status = 'running'"
    until(lambda: copy.execute(busy).fetchone() == (0,), "the end of the copy's work")
    worker.close()
    assert violations(copy) == []
    results = copy.execute("""
        select a.name, t.content -> 'result' from agentmesh.transcript t join agentmesh.agents a on a.id = t.agent_id
        where t.kind = 'tool_result' and t.content ->> 'name' in ('bash', 'wait')
    """).fetchall()
    found: dict[str, Any] = dict(results)
    assert [entry["name"] for entry in found["root"]["results"]] == NAMES
    assert found["works"]["error"].startswith("interrupted: the worker died while this ran")
    assert (rig.workdir / "log").read_text() == "ran\n"


def assert_roles_have_their_rights(copy: psycopg.Connection) -> None:
    rights = """
        select has_table_privilege('agentmesh_worker', 'agentmesh.agents', 'select'),
          has_table_privilege('agentmesh_reader', 'agentmesh.v_agents', 'select'),
          has_function_privilege('public', 'agentmesh.delete_session(uuid)', 'execute')
    """
    assert copy.execute(rights).fetchone() == (True, True, False)


def assert_ids_go_on(copy: psycopg.Connection) -> None:
    for table in ("mail", "model_calls"):
        newest = copy.execute(f"select max(id) from agentmesh.{table}").fetchone()
        given = copy.execute("select nextval(pg_get_serial_sequence(%s, 'id'))", [f"agentmesh.{table}"]).fetchone()
        assert newest is not None
        assert given is not None
        assert given[0] > newest[0]
