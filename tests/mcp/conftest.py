"""A real `agentmesh mcp` process and the official client; the mesh's other agents are played by the test, or real."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from agentmesh.app import HostAndUser
from agentmesh.domain.ids import AgentId
from agentmesh.store import sessions
from tests.cli.conftest import CommandLine
from tests.fixtures.engine import until
from tests.fixtures.mesh import Mesh


class Guest:
    """One client, in its session."""

    def __init__(self, client: Client, mesh: Mesh) -> None:
        self.client = client
        self._mesh = mesh

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; return its result, which is no error."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer
        return read(answer)

    async def refused(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; return its result, which is an error."""
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, answer
        return read(answer)

    async def id(self, name: str = "root") -> AgentId:
        """Return the id of an agent of the session; the first call joins it."""
        agents = (await self.call("list_agents"))["agents"]
        found = next(each["agent_id"] for each in agents if each["name"] == name)
        return AgentId(self._mesh.one("select %s::uuid", found))


def read(answer: Any) -> Any:
    """Return the JSON that a tool answered with."""
    (content,) = answer.content
    return json.loads(content.text)


class RawServer:
    """A server whose every byte the test sees."""

    def __init__(self, process: subprocess.Popen[bytes], mark: bytes = b"") -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
        self.stdin.write(mark)
        self.write({"id": 0, "method": "initialize", "params": client})
        assert json.loads(self.stdout.readline())["result"]["serverInfo"]["name"] == "agentmesh"
        self.write({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: dict[str, Any]) -> None:
        """Send a call; its answer is not waited for."""
        self.write({"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def write(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.stdin.flush()


class Desk:
    """Starts servers as a user's configuration would, on the test's own database."""

    def __init__(self, am: CommandLine, mesh: Mesh, folder: Path) -> None:
        self.am, self.mesh = am, mesh
        self._errors = folder / "stderr"

    @property
    def errors(self) -> str:
        """What all servers said on stderr."""
        return self._errors.read_text() if self._errors.exists() else ""

    @asynccontextmanager
    async def guest(self, *args: str, mode: str = "auto", model: str = "demo", **environ: str) -> AsyncIterator[Guest]:
        """Start a server and be its client."""
        self.am.folder.mkdir(exist_ok=True)
        given = ["-m", "agentmesh", "mcp", *(["--model", model] if model and "--session" not in args else []), *args]
        params = StdioServerParameters(
            command=sys.executable, args=given, env={**self.am.environ, **environ}, cwd=str(self.am.folder)
        )
        with self._errors.open("a") as errlog:
            async with Client(stdio_client(params, errlog=errlog), mode=mode) as client:
                yield Guest(client, self.mesh)

    @contextmanager
    def raw(self, *args: str, mark: bytes = b"") -> Iterator[RawServer]:
        """Start a server without a client, and shake hands; ``mark`` comes before the first byte."""
        with self.am.start("mcp", *args) as process:
            yield RawServer(process, mark)

    def session(self) -> str:
        """Begin a session of this place with an ordinary root; return its id."""
        place = HostAndUser.here()
        new = sessions.NewSession(str(self.am.folder), place.host, place.os_user, "demo/demo", "You are an agent.", [])
        self.mesh.root = self.mesh.run(sessions.start_session, new)
        self.mesh.session = self.mesh.session_of(self.mesh.root)
        return str(self.mesh.session)


@pytest.fixture
def am(tmp_path: Path, database_url: str) -> CommandLine:
    """The command line on the test's own database."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=database_url)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client give a server time to end by itself, however busy the machine is."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 60.0)


@pytest.fixture
def desk(am: CommandLine, mesh: Mesh, tmp_path: Path, patient: None) -> Desk:
    """Servers, and a worker that seems to be there for ever: the test plays the agents of the mesh."""
    place = HostAndUser.here()
    mesh.worker = mesh.join(host=place.host, os_user=place.os_user, pid=2**31 - 1)
    mesh.conn.execute("update agentmesh.workers set seen_at = now() + interval '1 hour'")
    return Desk(am, mesh, tmp_path)


def run(test: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Run an asynchronous test."""
    anyio.run(partial(test, *args))


async def soon(condition: Callable[[], Any], what: str = "it") -> Any:
    """Wait until the condition is true, while clients go on."""
    return await anyio.to_thread.run_sync(until, condition, what, 100.0)
