"""Whatever ends a command, its agent or its worker, no process of it is left, and no temporary file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import ROUNDS
from tests.fixtures.engine import Rig, call, do, until

pytestmark = pytest.mark.timeout(180)

Note = Callable[[str, object], None]

AGENTS = 4
EACH = 6
"""Processes that a command leaves: in the background, in sessions of their own, deaf, stopped, orphaned."""

WORKERS_END = {
    "crashes": signal.SIGSEGV,
    "aborts": signal.SIGABRT,
    "is killed": signal.SIGKILL,
    "is told to stop": signal.SIGTERM,
    "loses its terminal": signal.SIGHUP,
    "is interrupted": signal.SIGINT,
}


def command(marker: str, name: str) -> str:
    """A command with descendants that do what they can to stay."""
    sleeps = f"sleep {marker}"
    return (
        f"{sleeps} & setsid {sleeps} & nohup {sleeps} >/dev/null 2>&1 & (trap '' TERM HUP INT; {sleeps}; {sleeps}) & "
        f"{sleeps} & kill -STOP $!; (setsid sh -c '{sleeps} & {sleeps}' &) ; "
        f"touch ready-{name}; wait"
    )


def left(marker: str) -> list[psutil.Process]:
    """Return the living processes that have the marker in their command line."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(marker in part for part in process.info["cmdline"] or [])
    ]


@pytest.fixture
def marker(rig: Rig) -> Iterator[str]:
    """A number of seconds that no other command sleeps; what sleeps so long is gone after the test in any case."""
    made = f"1000.{rig.root.int % 10**9}"
    yield made
    for process in left(made):
        with suppress(psutil.Error):
            process.kill()


def run_commands(rig: Rig, marker: str) -> list[str]:
    """Let agents run commands; return their names once everything runs."""
    names = [f"a{n}" for n in range(AGENTS)]
    for name in names:
        rig.fork(name)
        rig.script(name, do(call("bash", command=command(marker, name), timeout=600)))
    for name in names:
        rig.prompt("x", name)
    until(lambda: all((rig.workdir / f"ready-{name}").exists() for name in names), "the commands")
    until(lambda: len(left(marker)) >= AGENTS * EACH, "their processes")
    return names


@pytest.mark.parametrize("how", WORKERS_END if ROUNDS else ["crashes"])
def test_a_worker_ends_in_the_middle_of_commands(
    rig: Rig, marker: str, tmp_path: Path, how: str, record_property: Note
):
    rig.root = rig.session(provider="openai")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("AGENTMESH_", "OPENAI_"))}
    environ |= {
        "AGENTMESH_DATABASE_URL": rig.url,
        "OPENAI_BASE_URL": rig.model.base_url,
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(tmp_path),
        "TMPDIR": str(temporary),
    }
    starts = [sys.executable, "-m", "agentmesh", "worker", "--any"]
    with (
        (tmp_path / "worker.log").open("wb") as log,
        subprocess.Popen(starts, env=environ, cwd=rig.workdir, stderr=log, stdout=log) as worker,
    ):
        try:
            run_commands(rig, marker)
            commands = len(left(marker))
            worker.send_signal(WORKERS_END[how])
            worker.wait(30)
            until(lambda: left(marker) == [], "the end of all processes")
        finally:
            worker.kill()
    # The spawner removes it after its commands have ended.
    until(lambda: not list(temporary.glob("agentmesh*")), "the removal of the worker's temporary directory")
    rig.end()
    record_property("fault", (f"a worker {how} while commands run", 1, {"processes ended": commands}))


@pytest.mark.parametrize("how", ["interrupt", "kill", "end"] if ROUNDS else ["kill"])
def test_agents_are_stopped_in_the_middle_of_commands(rig: Rig, marker: str, how: str, record_property: Note):
    rig.worker(concurrency=AGENTS)
    names = run_commands(rig, marker)
    commands = len(left(marker))
    if how == "end":
        rig.end()
    else:
        for name in names:
            getattr(rig, how)(name)
    until(lambda: left(marker) == [], "the end of all processes")
    rig.rest()
    record_property("fault", (f"{how} while commands run", AGENTS, {"processes ended": commands}))
