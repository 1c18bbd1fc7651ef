"""Processes that hold keys are closed to other processes of their user: environment, memory, open files, tracing."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.fixtures.engine import until
from tests.fixtures.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc and prctl")

PROGRAM = str(Path(sys.executable).with_name("agentmesh"))
POWERLESS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
"""In front of a command: root may look into every process, so as root the tests put its capabilities down."""
LOOKING = """
import ctypes, json, os, sys
pid, seen = sys.argv[1], []
for name in ("environ", "mem", "maps", "auxv"):
    try:
        open(f"/proc/{pid}/{name}", "rb").close()
        open(f"/proc/{pid}/{name}", "rb").read(0 if name == "mem" else 1)
        seen.append(name)
    except OSError:
        pass
for name in ("fd/0", "exe", "cwd"):
    try:
        os.readlink(f"/proc/{pid}/{name}")
        seen.append(name)
    except OSError:
        pass
attach = 16
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(attach, int(pid), None, None) == 0:
    seen.append("ptrace")
print(json.dumps(seen))
"""


def seen(pid: int) -> set[str]:
    """Return what another process of the same user sees of a process."""
    looked = subprocess.run(
        [*POWERLESS, sys.executable, "-c", LOOKING, str(pid)], capture_output=True, text=True, check=True
    )
    return set(json.loads(looked.stdout))


def test_a_process_of_nobodys_is_open():
    """The control: what the others are asked for can be seen of a process that has done nothing about it."""
    with subprocess.Popen([*POWERLESS, "sleep", "60"]) as process:
        until(lambda: b"sleep" in Path(f"/proc/{process.pid}/cmdline").read_bytes()[:5])
        try:
            assert {"environ", "mem", "maps", "fd/0", "exe"} <= seen(process.pid)
        finally:
            process.kill()


@pytest.fixture
def am(tmp_path, proxy) -> CommandLine:
    """By TCP: root's capabilities open the way to the socket of the tests' server."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=proxy.url)


def worker(mesh) -> Callable[[], bool]:
    return lambda: bool(mesh.column("select pid from agentmesh.workers where host <> 'testhost' and ended_at is null"))


@pytest.mark.parametrize(
    "words", [("worker",), ("run", "--model", "demo", "--permission-mode", "all", "run cat go")], ids=["worker", "run"]
)
def test_a_process_that_runs_agents_is_closed(am, mesh, words):
    am.folder.mkdir()
    os.mkfifo(am.folder / "go")
    with subprocess.Popen([*POWERLESS, PROGRAM, *words], cwd=am.folder, env=am.environ) as process:
        try:
            until(worker(mesh), "a worker")
            assert seen(process.pid) == set()
            core = resource.prlimit(process.pid, resource.RLIMIT_CORE)
            assert core[0] == 0
        finally:
            process.kill()


def test_the_mcp_server_is_closed(am):
    am.folder.mkdir()
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*POWERLESS, PROGRAM, "mcp"], cwd=am.folder, env=am.environ, stdin=pipe, stdout=pipe
    ) as process:
        assert process.stdin
        assert process.stdout
        try:
            process.stdin.write(json.dumps(hello).encode() + b"\n")
            process.stdin.flush()
            assert b"result" in process.stdout.readline()
            assert seen(process.pid) == set()
        finally:
            process.kill()


def test_the_terminal_ui_and_its_worker_are_closed(am, mesh):
    am.folder.mkdir()
    shown = Terminal([*POWERLESS, PROGRAM, "--model", "demo"], cwd=am.folder, environ=am.environ)
    try:
        shown.until("Message root", "❯")
        assert seen(shown.pid) == set()
        shown.type("hello")
        shown.press("enter")
        until(worker(mesh), "a worker")
        (pid,) = mesh.column("select pid from agentmesh.workers where host <> 'testhost' and ended_at is null")
        assert seen(pid) == set()
        os.kill(pid, 15)
    finally:
        shown.close()


def test_a_python_program_with_a_worker_is_closed(am, mesh):
    am.folder.mkdir()
    code = "import agentmesh\nwith agentmesh.open() as mesh, mesh.worker():\n    input()"
    with subprocess.Popen(
        [*POWERLESS, sys.executable, "-c", code], cwd=am.folder, env=am.environ, stdin=subprocess.PIPE
    ) as process:
        try:
            until(worker(mesh), "a worker")
            assert seen(process.pid) == set()
        finally:
            process.kill()
