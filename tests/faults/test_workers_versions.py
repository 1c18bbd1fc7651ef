"""Old code on a newer schema: it says so in one sentence, gives back what it has, and touches nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

import psycopg
import pytest

from agentmesh.domain.errors import SchemaReplaced
from agentmesh.store import code, schema
from tests.cli.conftest import CommandLine, am
from tests.fixtures.engine import Rig, call, do, say, until, when
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.timeout(180)
__all__ = ["am"]

COMMANDS = (
    ("worker", "--any"),
    ("send", "root", "hello"),
    ("db", "upgrade"),
)
OUTDATED = 4
STARTING = 60.0
"""Seconds in which a program is at work, also on a busy machine."""
NEWER = replace(schema.needed(), revision="9999")
UPGRADED = "update agentmesh.alembic_version set version_num = '9999'"


def everything(conn: psycopg.Connection) -> list[tuple[str, list[tuple[str]]]]:
    """Return every row of the program's tables."""
    tables = "select tablename from pg_tables where schemaname = 'agentmesh' order by 1"
    names = [name for (name,) in conn.execute(tables).fetchall()]
    rows = "select t::text from agentmesh.{} t order by 1"
    return [(name, conn.execute(rows.format(name)).fetchall()) for name in names]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_old_code_is_refused_on_a_newer_schema(am: CommandLine, conn: psycopg.Connection, command: tuple[str, ...]):
    Mesh(conn)
    conn.execute(UPGRADED)
    before = everything(conn)
    ended = am(*command)
    assert ended.code == 1
    assert f"has schema {NEWER}, newer than the {schema.needed()} of this agentmesh" in ended.err
    assert "Upgrade agentmesh" in ended.err
    assert "Traceback" not in ended.err
    assert everything(conn) == before


class Program:
    """``agentmesh`` in a process of its own, on the rig's database and model server."""

    def __init__(self, rig: Rig, home: Path, *words: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTMESH_", "OPENAI_"))}
        own = {
            "AGENTMESH_DATABASE_URL": rig.url,
            "OPENAI_BASE_URL": rig.model.base_url,
            "OPENAI_API_KEY": "none",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "HOME": str(home),
        }
        command = [sys.executable, "-m", "agentmesh", *words]
        self._log = (home / "said").open("w+")
        self.process = subprocess.Popen(
            command, env={**kept, **own}, cwd=rig.workdir, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log
        )

    def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and what it said."""
        code = self.process.wait(STARTING)
        log: IO[str] = self._log
        log.seek(0)
        return code, log.read()

    def close(self) -> None:
        """End it, should it still run."""
        self.process.kill()
        self.process.wait()
        self._log.close()


@pytest.fixture
def held(rig: Rig) -> Iterator[threading.Event]:
    """A root whose first answer, a command, is held back, on the rig's way to be done; set it to let it come."""
    go_on = threading.Event()
    rig.root = rig.session(provider="openai")
    rig.script("root", when(go_on, do(call("bash", command="echo ran >> log"))), say("all done"))
    yield go_on
    go_on.set()


@pytest.fixture
def old_worker(rig: Rig, held: threading.Event, tmp_path: Path) -> Iterator[Program]:
    """A worker of this version that is in the middle of a model call."""
    started = Program(rig, tmp_path, "worker", "--any")
    try:
        rig.prompt()
        until(rig.requests, "its model call", STARTING)
        yield started
    finally:
        started.close()


def assert_it_says_so(ended: tuple[int, str], newer: schema.Schema = NEWER) -> None:
    code, said = ended
    assert code == OUTDATED, said
    sentence = f"has been upgraded to schema {newer}, newer than the {schema.needed()} of this agentmesh."
    assert said.count(sentence) == 1, said
    assert "Start it again once agentmesh is upgraded here too" in said
    assert "Traceback" not in said


def assert_free(rig: Rig) -> None:
    """The root runs and nobody owns it."""
    assert rig.status() == "running"
    assert rig.one("select worker_id from agentmesh.agents where id = %s", rig.root) is None
    assert rig.one("select count(*) from agentmesh.workers where ended_at is null") == 0


def assert_another_ends_it(rig: Rig, held: threading.Event) -> None:
    """A worker of the newer version goes on with what was given back, and no command runs twice."""
    held.set()
    rig.worker(providers=("openai",))
    rig.rest()
    assert rig.last() == ("all done", None)
    assert (rig.workdir / "log").read_text() == "ran\n"


def test_a_worker_that_runs_ends_when_the_schema_becomes_newer(rig: Rig, held: threading.Event, old_worker: Program):
    rows = rig.kinds()
    rig.conn.execute(UPGRADED)
    assert_it_says_so(old_worker.ended())
    assert_free(rig)
    assert rig.kinds() == rows, "it has written nothing more"
    rig.conn.execute("update agentmesh.alembic_version set version_num = %s", [schema.head()])
    assert_another_ends_it(rig, held)


def test_a_worker_whose_tick_is_gone_in_the_newer_schema_ends_too(rig: Rig, old_worker: Program):
    rig.conn.execute(f"begin; drop function agentmesh.tick; {UPGRADED}; commit")
    assert_it_says_so(old_worker.ended())
    assert_free(rig)


def test_a_worker_that_finds_the_newer_schema_when_it_connects_again_ends_too(rig: Rig, old_worker: Program):
    """Its tick does not come to that: all its connections are cut in the same commit."""
    cut = "pg_terminate_backend(pid) from pg_stat_activity where application_name like 'agentmesh/%%'"
    rig.conn.execute(f"begin; {UPGRADED}; select {cut} and datname = current_database(); commit")
    assert_it_says_so(old_worker.ended())
    until(lambda: rig.one("select count(*) from agentmesh.workers where ended_at is null") == 0, "its end in the rows")


def test_a_run_ends_when_the_schema_becomes_newer(rig: Rig, tmp_path: Path):
    go_on = threading.Event()
    rig.script("root", when(go_on, say("never said")))
    running = Program(rig, tmp_path, "run", "--model", "openai/m", "go")
    try:
        until(rig.requests, "its model call", STARTING)
        rig.conn.execute(UPGRADED)
        assert_it_says_so(running.ended())
        (owned,) = (
            rig.conn.execute("select count(*) from agentmesh.agents where worker_id is not null").fetchone() or ()
        )
        assert owned == 0
    finally:
        go_on.set()
        running.close()


NEXT = """
from alembic import op

revision = "9999"
down_revision = "{}"


def upgrade():
    op.execute("alter table agentmesh.transcript add column next text not null default ''")
"""


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process, and no other, be of a version whose schema has one more column and another function tick."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema.migrations(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_next.py").write_text(NEXT.format(schema.head()))
    later = {
        name: text.replace("agentmesh.tick(worker bigint", "agentmesh.tick(its_id bigint")
        for name, text in code.files().items()
    }
    monkeypatch.setattr(schema, "migrations", lambda: folder)
    monkeypatch.setattr(code, "files", lambda: later)
    for cached in (code.digest, schema.needed):
        cached.cache_clear()
    assert schema.head() == "9999"


def test_an_upgrade_under_a_worker_fences_it_in_the_same_commit(
    rig: Rig, old_worker: Program, held: threading.Event, next_version: None, monkeypatch: pytest.MonkeyPatch
):
    rows = rig.kinds()
    schema.upgrade(rig.url)
    assert_free(rig)
    held.set()
    newer = schema.needed()
    monkeypatch.undo()
    for cached in (code.digest, schema.needed):
        cached.cache_clear()
    assert_it_says_so(old_worker.ended(), newer)
    assert_free(rig)
    assert rig.kinds() == rows, "the answer that came after the upgrade was not stored"
    assert not (rig.workdir / "log").exists()


def test_a_worker_in_the_hands_of_other_code_says_why_it_stopped(rig: Rig):
    parts = rig.worker()
    rig.conn.execute(UPGRADED)
    until(lambda: parts.worker.failed, "its end")
    parts.worker.stop()
    assert isinstance(parts.worker.failed, SchemaReplaced)
    assert parts.events[-1] == f"worker {parts.worker.worker_id} stopped, 0 agents handed over"
