"""Tries an installed agentmesh as a user who has just installed it: ``smoke.py plain|extras|brief``.

It runs with the interpreter of that installation, outside the checkout, in an empty home. Only the model is scripted.
The first thing that is not right ends it, with what was seen.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import agentmesh

_PROGRAM = Path(sys.executable).parent / "agentmesh"
_PATIENCE = 180.0
_WHAT_THE_DEMO_LEFT = """
select
  (select count(*) from agentmesh.v_agents where depth > 0) as forked,
  (select count(*) from agentmesh.v_mail where sender_name is not null) as sent,
  (select count(*) from agentmesh.v_timeline where what = 'call wait') as waited,
  (select count(*) from agentmesh.v_agents where status = 'dead') as killed
"""


def main(what: str) -> None:
    """Try one installation."""
    if Path(agentmesh.__file__).resolve().is_relative_to(Path(__file__).resolve().parents[2]):
        _fail("where it is installed", f"this is the checkout: {agentmesh.__file__}")
    checks = {"plain": (_help, _no_extras, _demo, _api, _screen), "extras": (_mcp, _traces), "brief": (_help, _api)}
    for check in checks[what]:
        _timed(check)
    _timed(_stop)


def _timed(check: Callable[[], None]) -> None:
    began = time.monotonic()
    check()
    version = ".".join(str(part) for part in sys.version_info[:2])
    print(
        f"package:   {version} {check.__name__.strip('_').replace('_', ' ')}: {time.monotonic() - began:.1f} s",
        flush=True,
    )


def _help() -> None:
    _expect(_run("--version"), f"agentmesh {agentmesh.__version__}\n")
    for words in ("fork", "send", "wait", "kill", "demo"):
        _expect(_run("--help"), words)
    _expect(_run("mcp", "--help"), "--token-env")


def _no_extras() -> None:
    """What needs an extra says so."""
    _expect(_run("mcp", exit_code=2), "pip install '.[mcp]'")
    _expect(_run("doctor", exit_code=None), "PostgreSQL 18")


def _demo() -> None:
    """The embedded server starts; agents fork, send and wait."""
    Path("notes.txt").write_text("three words here\n")
    _expect(_run("demo"), "completed in")
    seen = _run("sql", "--json", _WHAT_THE_DEMO_LEFT, errors=False)
    (left,) = json.loads(seen)
    _require(
        left["forked"] >= 4 and left["sent"] >= 2 and left["waited"] >= 1 and left["killed"] >= 1, "the demo", seen
    )


def _api() -> None:
    with agentmesh.open() as mesh, mesh.worker():
        session = mesh.start_session(model="demo", permission_mode="all")
        child = session.fork("counter", "Count the files here.")
        waited = child.wait(timeout=_PATIENCE)
        _expect(f"{waited.status} {waited.output}", "idle ")
        _require(bool(waited.output), "what the child said", repr(waited))
        _require(session.end() == 2, "who died", repr(session.list_agents(everybody=True)))


def _screen() -> None:
    """The terminal UI draws its first screen, with its style sheets, and can be left."""
    leader, follower = pty.openpty()
    screen = subprocess.Popen([_PROGRAM, "--model", "demo"], stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    try:
        seen = ""
        until = time.monotonic() + _PATIENCE
        while "root" not in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen):
            if time.monotonic() > until or not select.select([leader], [], [], 1)[0]:
                if screen.poll() is not None or time.monotonic() > until:
                    _fail("the screen", repr(seen[-2000:]))
                continue
            seen += os.read(leader, 65536).decode("utf-8", "replace")
        _leave(leader, screen)
    finally:
        screen.kill()
        screen.wait()
        os.close(leader)


def _leave(leader: int, screen: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE
    while screen.poll() is None:
        if time.monotonic() > until:
            _fail("leaving the screen", "Ctrl+C does not end it")
        os.write(leader, b"\x03")
        while select.select([leader], [], [], 0.2)[0]:
            try:
                os.read(leader, 65536)
            except OSError:  # its side is closed
                break
    _require(screen.returncode == 0, "leaving the screen", f"exit code {screen.returncode}")


def _mcp() -> None:
    """The official client, over stdio."""
    import anyio
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=str(_PROGRAM), args=["mcp", "--model", "demo", "--permission-mode", "all"], env=dict(os.environ)
    )

    async def talk() -> None:
        async with Client(stdio_client(server)) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            _require(names >= {"fork", "send", "wait", "kill", "list_agents"}, "the tools", str(names))
            await client.call_tool("fork", {"name": "counter", "prompt": "Count the files here."})
            waited = await client.call_tool("wait", {"timeout": _PATIENCE, "from_agents": ["counter"]})
            _expect(str(waited.content), "complete")

    anyio.run(talk)


def _traces() -> None:
    """Spans are told, by a run that no worker in the background takes the work from: on a server of its own."""
    place = str(Path.cwd() / "traces")
    seen = _run("run", "--model", "demo", "Say hello.", OTEL_TRACES_EXPORTER="console", AGENTMESH_DATA_DIR=place)
    _expect(seen, "invoke_agent root")


def _stop() -> None:
    """End the workers that were started in the background; the last one takes the server along."""
    import psutil

    ours = [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [""])[0] == sys.executable and "worker" in process.info["cmdline"]
    ]
    for process in ours:
        process.terminate()
    psutil.wait_procs(ours, timeout=60)


def _run(*arguments: str, exit_code: int | None = 0, errors: bool = True, **environment: str) -> str:
    """Run the program; return what it printed."""
    done = subprocess.run(
        [_PROGRAM, *arguments], env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if errors else subprocess.PIPE, text=True, timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if exit_code is not None and done.returncode != exit_code:
        _fail(f"agentmesh {' '.join(arguments)}", f"exit code {done.returncode}\n{done.stdout}{done.stderr or ''}")
    return done.stdout


def _expect(seen: str, wanted: str) -> None:
    if wanted not in seen:
        _fail(repr(wanted), seen)


def _require(holds: bool, what: str, seen: str) -> None:
    if not holds:
        _fail(what, seen)


def _fail(what: str, seen: str) -> None:
    sys.exit(f"smoke: {what}: seen instead:\n{seen}")


if __name__ == "__main__":
    main(sys.argv[1])
