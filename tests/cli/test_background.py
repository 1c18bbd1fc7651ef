"""Issue 17, point 10: two commands in a row start one background worker, and one that fails fails for its directory."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cli.conftest import CommandLine
from tests.faults.cluster import small_disk
from tests.fixtures.pooler import PROGRAM, pooled
from tests.fixtures.proxy import proxy

__all__ = ["pooled", "proxy"]

_PATIENCE = 40.0
_STARTED = "one was started in the background"


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


@pytest.fixture
def tidy(am) -> Iterator[CommandLine]:
    """The command line; the workers that it leaves are ended."""
    am.folder.mkdir()
    yield am
    for process in _workers(am.folder.parent):
        with suppress(psutil.Error):
            process.kill()


def _workers(below: Path) -> list[psutil.Process]:
    """Return the background workers that run in a folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(below) and "--linger" in process.cmdline():
                found.append(process)
    return found


@pytest.fixture
def session(tidy, mesh, here) -> str:
    """A session here which nobody serves."""
    mesh.conn.execute("update agentmesh.workers set ended_at = now()")
    return str(mesh.session_of(here))


def test_17_10_two_forks_in_a_row_start_one_worker(tidy, mesh, session):
    first, second = tidy("fork", "one", "list files"), tidy("fork", "two", "list files")
    assert (first.code, second.code) == (0, 0)
    assert _STARTED in first.err
    assert _STARTED not in second.err
    busy = "select count(*) from agentmesh.agents where name in ('one', 'two') and status = 'running'"
    _until(lambda: mesh.one(busy) == 0, "both agents' end")
    assert mesh.one("select count(*) from agentmesh.workers where providers <> '{}' and ended_at is null") == 1
    assert len(_workers(tidy.folder)) == 1


def test_17_10_forks_at_the_same_time_start_one_worker(tidy, mesh, session):
    command = [sys.executable, "-m", "agentmesh", "fork"]
    options = {"cwd": tidy.folder, "env": tidy.environ, "stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    running = [
        subprocess.Popen([*command, f"f{n}", "list files"], stdout=subprocess.DEVNULL, **options) for n in range(4)
    ]
    said = [process.communicate(timeout=90)[1].decode() for process in running]
    assert sum(_STARTED in one for one in said) == 1
    _until(lambda: mesh.one("select count(*) from agentmesh.agents where status = 'running'") == 0, "the agents' end")
    assert mesh.one("select count(*) from agentmesh.workers where providers <> '{}' and ended_at is null") == 1


def test_17_10_a_wrong_project_file_fails_no_worker_that_starts_beside_it(tidy, mesh, session):
    broken = tidy.folder / ".agentmesh" / "config.toml"
    elsewhere = CommandLine(tidy.folder.parent / "elsewhere", **tidy.environ)
    elsewhere.folder.mkdir()
    mesh.conn.execute("update agentmesh.sessions set workdir = %s where id = %s", [str(elsewhere.folder), mesh.session])
    mesh.conn.execute(
        "update agentmesh.sessions s set host = t.host, os_user = t.os_user from agentmesh.sessions t where t.id = %s",
        [session],
    )
    mesh.conn.execute("update agentmesh.agents set model = 'demo/demo'")
    broken.parent.mkdir()
    broken.write_text("modle = 'x'")
    first = elsewhere("fork", "brave", "list files", "--session", session)
    assert _STARTED in first.err
    second = elsewhere("fork", "lucky", "list files", "--session", str(mesh.session))
    assert second.code == 0
    _until(lambda: mesh.one("select status from agentmesh.agents where name = 'lucky'") == "idle", "lucky's end")
    log = Path(tidy.environ["XDG_STATE_HOME"]) / "agentmesh" / "worker.log"
    _until(lambda: mesh.one("select status from agentmesh.agents where name = 'brave'") == "idle", "brave's end")
    assert "modle is not a known key" in log.read_text(), "it says why the file is not used"


def test_a_worker_starts_though_the_home_is_full(tidy, mesh, session, tmp_path):
    with small_disk(1, os.getuid(), tmp_path / "disk") as home:
        with suppress(OSError):
            (home / "fill").write_bytes(bytes(2 << 20))
        tidy.environ |= {"HOME": str(home), "XDG_STATE_HOME": str(home)}
        done = tidy("send", "root", "list files")
        assert done.code == 0, done.err
        assert "cannot be written" not in done.err
        _until(lambda: mesh.one("select status from agentmesh.agents where session_id = %s", session) == "idle", "it")
        for process in _workers(tidy.folder.parent):
            process.kill()


def test_17_10_the_lock_is_free_when_the_worker_is_registered_or_dead(tidy, mesh, session):
    assert _STARTED in tidy("fork", "one", "list files").err
    _until(lambda: mesh.one("select count(*) from agentmesh.workers where ended_at is null") == 1, "the worker")
    (lock,) = (Path(tidy.environ["XDG_STATE_HOME"]) / "agentmesh").glob("worker-*.starting")

    def is_free() -> bool:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    _until(is_free, "the lock")
    for worker in _workers(tidy.folder):
        worker.send_signal(signal.SIGKILL)
        worker.wait(20)
    assert _STARTED in tidy("fork", "two", "list files").err


_HELD = """import os, sys
if "--starting-lock" in sys.orig_argv:
    open({fifo!r}, "rb").read()
"""
_UNSERVED = "No worker serves this session"


@pytest.fixture
def held(tidy, tmp_path) -> Path:
    """A pipe: workers that the command line starts stand still, before they do anything, until it is written to."""
    folder: Path = tmp_path / "held"
    folder.mkdir()
    fifo = folder / "go"
    os.mkfifo(fifo)
    (folder / "sitecustomize.py").write_text(_HELD.format(fifo=str(fifo)))
    tidy.environ["PYTHONPATH"] = os.pathsep.join([str(folder), tidy.environ["PYTHONPATH"]])
    return fifo


@pytest.mark.parametrize("command", [["wait", "--timeout", "0.5"], ["ps"], ["tree"], ["board"]])
def test_a_worker_that_starts_is_not_said_to_be_missing(tidy, held, session, command):
    assert _STARTED in tidy("fork", "one", "list files").err
    done = tidy(*command)
    assert done.code == (3 if command[0] == "wait" else 0)
    assert _UNSERVED not in done.err


def test_a_wait_goes_on_when_the_held_worker_is_let_go(tidy, held, session):
    assert _STARTED in tidy("fork", "one", "list files").err
    with tidy.start("wait", "one", "--timeout", "45") as waiting:
        held.write_bytes(b"go")
        out, err = waiting.communicate(timeout=50)
    assert waiting.returncode == 0
    assert "idle  one" in out.decode()
    assert _UNSERVED not in err.decode()


def test_a_wait_says_later_that_the_worker_did_not_come(tidy, held, mesh, session):
    assert _STARTED in tidy("fork", "one", "list files").err
    with tidy.start("wait", "one", "--timeout", "45") as waiting:
        name = f"agentmesh/listener/{waiting.pid}"  # it is opened after the first look for a worker
        heard = "select count(*) from pg_stat_activity where application_name = %s"
        _until(lambda: mesh.one(heard, name) > 0, "the wait")
        (worker,) = _workers(tidy.folder)
        worker.kill()
        worker.wait(20)
        assert waiting.stderr is not None
        line = waiting.stderr.readline().decode()
    assert line.startswith(f"{_UNSERVED}, so its 1 running agent stands still")


@pytest.mark.skipif(not PROGRAM, reason="no pgbouncer here")
@pytest.mark.parametrize("command", [("fork", "one", "list files"), ("send", "root", "hello")])
def test_a_pooler_on_which_no_worker_can_run_is_said_and_the_fork_or_mail_stays(tidy, session, pooled, command):
    done = tidy(*command, AGENTMESH_DATABASE_URL=pooled("transaction"))
    assert done.code == 0
    assert _STARTED not in done.err
    assert "agentmesh: No worker serves this session, and none can: " in done.err
    assert "AGENTMESH_DIRECT_DATABASE_URL" in done.err


def test_a_background_worker_tries_until_the_database_answers(tidy, mesh, proxy):
    proxy.refuse()
    with tidy.start("worker", "--linger", "60", AGENTMESH_DATABASE_URL=proxy.url) as worker:
        assert worker.stderr is not None
        first = worker.stderr.readline().decode()
        assert "tries again" in first
        assert "cannot be reached" in first
        proxy.admit()
        assert "started" in worker.stderr.readline().decode()


def test_a_worker_that_a_person_starts_says_at_once_that_the_database_is_away(tidy, proxy):
    proxy.refuse()
    done = tidy("worker", AGENTMESH_DATABASE_URL=proxy.url)
    assert done.code == 1
    assert "cannot be reached" in done.err
    assert "tries again" not in done.err
