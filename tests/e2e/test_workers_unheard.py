"""Issue 17, point 1: a worker that nobody hears works on; one that has lost a thread ends."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentmesh.domain.errors import WorkerFailed
from tests.fixtures.engine import Rig, call, do, say

STEPS = 8
"""Agents that come and go: each makes the worker say two sentences."""


def full() -> int:
    """A disk without space."""
    return os.open("/dev/full", os.O_WRONLY)


def left() -> int:
    """A pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def blocked() -> int:
    """A pipe that is full and whose reader takes nothing, like a pager; it stays open with the test."""
    _reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writer, True)
    return writer


@pytest.fixture
def start(rig: Rig, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start ``agentmesh worker`` with this stderr for the sessions of the rig."""
    rig.root = rig.session(provider="openai", max_children=STEPS)
    started: list[subprocess.Popen[bytes]] = []
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTMESH_", "OPENAI_"))}
    environ |= {
        "AGENTMESH_DATABASE_URL": rig.url,
        "OPENAI_BASE_URL": rig.model.base_url,
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(tmp_path),
    }

    def start(stderr: int, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "agentmesh", "worker", "--any", *options]
        started.append(
            subprocess.Popen(command, env=environ, cwd=rig.workdir, stderr=stderr, stdout=subprocess.DEVNULL)
        )
        os.close(stderr)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("log", [(), ("--log-file", "-")], ids=["sentences", "json"])
@pytest.mark.parametrize("stderr", [full, left, blocked])
def test_a_worker_whose_stderr_cannot_be_written_runs_its_agents_to_their_end(rig, start, stderr, log):
    worker = start(stderr(), *log)
    names = [f"c{n}" for n in range(STEPS)]
    rig.script("root", do(*(call("fork", name=name, prompt="work") for name in names)), say("forked"))
    rig.prompt()
    rig.rest()
    assert [rig.last(name)[0] for name in ("root", *names)] == ["done"] * (STEPS + 1), "the root after their reports"
    assert worker.poll() is None
    worker.terminate()
    assert worker.wait(20) == 0, "it hands over and ends as if somebody had listened"
    assert rig.one("select count(*) from agentmesh.workers where ended_at is null") == 0


class Broken(logging.Handler):
    """A handler of somebody else's that fails, as one does whose disk is full."""

    def emit(self, _record: logging.LogRecord) -> None:
        raise OSError("No space left on device")


@pytest.fixture
def broken_log() -> Iterator[None]:
    """Let every record of the program's be written by a handler that fails."""
    ours, handler = logging.getLogger("agentmesh"), Broken()
    ours.addHandler(handler)
    yield
    ours.removeHandler(handler)


def fail(_words: str) -> None:
    raise OSError("No space left on device")


@pytest.mark.usefixtures("broken_log")
def test_what_callbacks_and_log_handlers_raise_ends_no_thread(rig):
    parts = rig.worker(on_event=fail)
    refused = iter(range(3))

    def disturb(when: str, name: str) -> None:
        if (when, name) == ("before", "claim") and next(refused, None) is not None:
            raise ValueError("on purpose: what is logged next cannot be")

    parts.database.hook = disturb
    for n in range(5):
        rig.script("root", *(say(f"answer {step}") for step in range(n + 1)))
        assert rig.run() == f"answer {n}"
    assert parts.worker.failed is None


@pytest.mark.parametrize("loop", ["claim", "tick", "wait_take", "set_activities"])
def test_a_loop_that_has_died_ends_the_worker_and_hands_its_agents_over(rig, loop):
    parts = rig.worker()

    def die(when: str, name: str) -> None:
        if (when, name) == ("before", loop):
            raise SystemExit("on purpose: no loop survives that")

    parts.database.hook = die
    rig.script("root", do(call("wait", timeout=0.2)), say("went on"))
    rig.prompt()
    rig.until(lambda: parts.worker.failed, "its end")
    assert isinstance(parts.worker.failed, WorkerFailed)
    assert "on purpose" in parts.worker.failed.message
    rig.until(lambda: rig.one("select count(*) from agentmesh.workers where ended_at is null") == 0, "its farewell")
    rig.worker()
    rig.rest()
    assert rig.last()[0] == "went on"


def test_work_that_breaks_its_thread_ends_the_worker_too(rig):
    parts = rig.worker()

    def die(when: str, name: str) -> None:
        if (when, name) == ("before", "finish_step"):
            raise SystemExit("on purpose")

    parts.database.hook = die
    rig.prompt()
    rig.until(lambda: parts.worker.failed, "its end")
    rig.until(lambda: rig.one("select count(*) from agentmesh.workers where ended_at is null") == 0, "its farewell")
    rig.worker()
    rig.rest()
