"""Issue 17, point 7: `psql "$(agentmesh db url)"` works when no other process of agentmesh runs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from agentmesh.store.embedded import EmbeddedServer
from tests.cli.conftest import CommandLine
from tests.fixtures import server

_PATIENCE = 40.0


@pytest.fixture
def data(tmp_path) -> Iterator[Path]:
    """The folder of an embedded server of the test's own, where its own user may pass."""
    folder = server.run_folder() / f"linger-{tmp_path.name}"
    yield folder
    EmbeddedServer(folder).stop(force=True)


@pytest.fixture
def alone(tmp_path, data) -> CommandLine:
    """The command line with nothing but that server, which does not run."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATA_DIR=str(data))


def _keeper(data: Path) -> psutil.Process:
    return psutil.Process(int((data / "postgres" / "keeper.lock").read_text()))


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


def _url(alone: CommandLine, *options: str) -> str:
    done = alone("db", "url", *options)
    assert done.code == 0, done.err
    return done.out.strip()


def test_17_7_psql_works_with_the_url_alone(alone, data):
    program = EmbeddedServer(data).binary("psql")
    alone.folder.mkdir()
    query = "select count(*) from agentmesh.v_sessions"
    command = (
        f'{program} "$(agentmesh db url)" -XAtc "{query}" && {program} "$(agentmesh db url --reader)" -XAtc "{query}"'
    )
    bin_folder = Path(sys.executable).parent
    environ = {**alone.environ, "PATH": f"{bin_folder}:{alone.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command], env=environ, cwd=alone.folder, capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"0\n0\n"), done.stderr
    kept = _keeper(data)
    assert (data / "postgres" / "log" / "keeper.log").read_text() == "", "it has no warning"
    assert alone("sessions").code == 0
    assert EmbeddedServer(data).running(), "a command that ends does not stop what is kept"
    assert _url(alone)
    assert _keeper(data) == kept, "one keeper is enough"
    assert alone("db", "stop").code == 0
    assert not EmbeddedServer(data).running()
    _until(lambda: not kept.is_running(), "the end of the keeper")


def test_17_7_the_server_ends_some_time_after_its_last_client(alone, data):
    assert alone("db", "start", "--linger", "1").code == 0
    with psycopg.connect(EmbeddedServer(data).url(), autocommit=True) as client:
        client.execute("select pg_sleep(4)")  # four times as long as it is kept without a client
        assert EmbeddedServer(data).running()
    # Not by asking the server: whoever does is a client.
    _until(lambda: not (data / "postgres" / "data" / "postmaster.pid").exists(), "the end of the server")
    assert EmbeddedServer(data).status().pid is None
    assert _url(alone, "--linger", "1"), "it starts again"


def test_17_7_a_later_start_keeps_it_for_longer(alone, data):
    assert alone("db", "start", "--linger", "5").code == 0
    again = alone("db", "start", "--linger", "600", AGENTMESH_MAX_DEPHT="3")
    assert (again.code, again.err.count("AGENTMESH_MAX_DEPHT is ignored")) == (0, 1)
    with suppress(psutil.TimeoutExpired):
        _keeper(data).wait(8)
    assert EmbeddedServer(data).running()


def test_17_7_who_only_asks_for_the_url_does_not_shorten_what_was_asked_for(alone, data):
    assert alone("db", "start", "--linger", "3600").code == 0
    assert _url(alone)
    wish = data / "postgres" / "keeper.seconds"
    assert float(wish.read_text()) == 3600
    assert _url(alone, "--linger", "700")
    assert float(wish.read_text()) == 700


def test_17_7_a_server_with_a_client_is_not_stopped_under_it(alone, data):
    with psycopg.connect(_url(alone), autocommit=True) as client:
        first = _keeper(data)
        first.kill()
        _until(lambda: not first.is_running() or first.status() == psutil.STATUS_ZOMBIE, "the end of the keeper")
        assert alone("sessions").code == 0, "which leaves as the last process with a share"
        assert client.execute("select 1").fetchone() == (1,)
        assert _keeper(data).pid != first.pid, "now this one keeps it"
        refused = alone("db", "stop")
        assert refused.code == 1
        assert "agentmesh: 1 client is connected to the embedded server." in refused.err
        assert "agentmesh db stop --force" in refused.err
        assert client.execute("select 1").fetchone() == (1,)
        assert alone("db", "stop", "--force").code == 0
        with pytest.raises(psycopg.OperationalError):
            client.execute("select 1")
    assert not EmbeddedServer(data).running()


def test_a_forced_stop_names_those_who_start_it_again(alone, data):
    server = EmbeddedServer(data)
    server.acquire()
    try:
        stopped = alone("db", "stop", "--force")
        assert stopped.code == 0
        assert "Stopped the embedded server.\nagentmesh: 1 other process uses it and starts it again." in stopped.err
    finally:
        server.release()


def test_17_7_without_clients_the_last_command_stops_what_nobody_asked_to_keep(alone, data):
    assert alone("sessions").code == 0
    assert not EmbeddedServer(data).running()
    assert not (data / "postgres" / "keeper.lock").exists()


def test_17_7_a_database_given_by_url_is_not_started(am):
    refused = am("db", "start")
    assert (refused.code, refused.out) == (2, "")
    assert "is not ours to start" in refused.err
