"""A server that knows none of our roles yet: who makes them, and who gives them their rights."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from agentmesh.store.embedded import EmbeddedServer
from tests.cli.conftest import CommandLine
from tests.fixtures import server
from tests.fixtures.commands import ROOT
from tests.fixtures.engine import until


@pytest.fixture
def fresh() -> Iterator[EmbeddedServer]:
    """A server of the test's own."""
    programs = os.environ.get("AGENTMESH_TEST_PG_BIN")
    folder = Path(tempfile.mkdtemp(prefix="roles-", dir=server.run_folder()))
    folder.chmod(0o711)
    with EmbeddedServer(folder, settings=server.DISPOSABLE, bin_dir=Path(programs) if programs else None) as made:
        yield made
    shutil.rmtree(folder)


@pytest.fixture
def superuser(fresh: EmbeddedServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(fresh.url(), autocommit=True) as connection:
        yield connection


def as_user(made: EmbeddedServer, name: str, folder: Path) -> CommandLine:
    """The command line as this role."""
    return CommandLine(folder / name, AGENTMESH_DATABASE_URL=made.url(role=name))


def test_an_owner_who_may_make_no_role_is_told_what_somebody_else_can_run(fresh, superuser, tmp_path):
    superuser.execute("create role plain login")
    superuser.execute("alter database agentmesh owner to plain")
    plain = as_user(fresh, "plain", tmp_path)
    first = plain("db", "upgrade")
    assert (first.code, first.out) == (0, "")
    statements = [line for line in first.err.splitlines() if line.startswith("  create role")]
    assert len(statements) == 3

    superuser.execute("\n".join(statements).encode())
    superuser.execute("create role w login in role agentmesh_worker")
    superuser.execute("create role p login in role agentmesh_person")
    refused = as_user(fresh, "w", tmp_path)("sessions", "--json")
    assert refused.code == 1
    assert "permission denied" in refused.err

    again = plain("db", "upgrade")
    assert (again.code, "create role" in again.err) == (0, False)
    assert as_user(fresh, "w", tmp_path)("sessions", "--json").code == 0
    assert as_user(fresh, "p", tmp_path)("run", "--model", "demo", "--permission-mode", "edits", "hi").code == 0
    worker = as_user(fresh, "w", tmp_path)("run", "--model", "demo", "hi")
    assert worker.code == 1
    assert "Grant agentmesh_person" in worker.err
    assert plain("sql", "--csv", "select count(*) from v_requests").out == "count\n0\n"


def test_the_script_of_the_containers_makes_a_login_with_which_a_worker_runs(fresh, superuser, tmp_path):
    password = 'it\'s "one" $word'
    environ = {
        "PATH": f"{fresh.binary('psql').parent}:{os.environ['PATH']}",
        "PGHOST": str(fresh.status().socket_dir),
        "POSTGRES_USER": "agentmesh",
        "POSTGRES_DB": "agentmesh",
        "WORKER_PASSWORD": password,
    }
    subprocess.run([ROOT / "deploy" / "roles.sh"], env=environ, check=True)
    stored = superuser.execute("select rolpassword like 'SCRAM%' from pg_authid where rolname = 'worker'").fetchone()
    assert stored == (True,)
    assert as_user(fresh, "agentmesh", tmp_path)("db", "upgrade").code == 0
    url = fresh.url(role="worker").replace("worker@", f"worker:{quote(password)}@")
    am = CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=url)
    with am.start("worker", "--any") as worker:
        until(lambda: am("worker", "--check").code == 0, "a healthy worker")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert am("db", "upgrade").code == 0  # nothing to do, and nothing that it may do
    found = am("doctor", "--deep", "--json").data["findings"]
    assert {one["state"] for one in found if one["about"] in ("server", "schema", "notifications", "rows")} == {"ok"}
