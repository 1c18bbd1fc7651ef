"""The command line as a user has it: a process of its own, in a directory of its own, on a database of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentmesh.app import HostAndUser
from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, sessions
from tests.fixtures.commands import ROOT, interpreter

_SECONDS = 50


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON value that it printed."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The JSON values that it printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """Runs ``agentmesh`` with a fixed directory and environment."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTMESH_", "OPENAI_"))}
        home = {name: str(folder / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
        self.environ = {**kept, **home, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environ}

    def configure(self, text: str) -> None:
        """Write the user's configuration."""
        file = self.folder.parent / "config" / "config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        self.environ["AGENTMESH_CONFIG_DIR"] = str(file.parent)

    def __call__(self, *args: str, stdin: str | bytes | None = "", **environ: str) -> Outcome:
        """``stdin`` comes through a pipe; None is no input at all, as from /dev/null."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        self.folder.mkdir(exist_ok=True)
        if request := interpreter().request(args, self.folder, {**self.environ, **environ}):
            code, out, err = interpreter().run(request, given, _SECONDS)
        else:
            with self._start(args, subprocess.DEVNULL if given is None else subprocess.PIPE, environ) as process:
                out, err = process.communicate(given, timeout=_SECONDS)
            code = process.returncode
        return Outcome(code, out.decode(), err.decode())

    @contextmanager
    def start(self, *args: str, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command and lend its process; it ends with the block."""
        with self._start(args, subprocess.PIPE, environ) as process:
            yield process

    @contextmanager
    def _start(self, args: Sequence[str], stdin: int, environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        self.folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "agentmesh", *args]
        pipe = subprocess.PIPE
        environ = {**self.environ, **environ}
        with subprocess.Popen(command, cwd=self.folder, env=environ, stdin=stdin, stdout=pipe, stderr=pipe) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def am(tmp_path, database_url) -> CommandLine:
    """``am("ps", "--json")`` runs ``agentmesh ps --json``."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=database_url)


@pytest.fixture
def lonely(tmp_path) -> CommandLine:
    """The same without any database."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATA_DIR=str(tmp_path / "data"))


@pytest.fixture
def here(am, mesh) -> AgentId:
    """The root of a session of the command line's own directory, which a worker seems to serve for ever."""
    place = HostAndUser.here()
    new = sessions.NewSession(
        str(am.folder), place.host, place.os_user, "demo/demo", "You are an agent.", [], title="here"
    )
    root: AgentId = mesh.run(sessions.start_session, new)
    # Nobody's pid: commands that only a person may give look whether they run below a worker.
    mesh.worker = mesh.join(host=place.host, os_user=place.os_user, pid=2**31 - 1, serves_any=True)
    mesh.conn.execute("update agentmesh.workers set seen_at = now() + interval '1 hour'")
    return root


def view(mesh, agent):
    """The agent as people see it."""
    session = mesh.session_of(agent)
    return next(one for one in mesh.run(agents.view, session) if one.id == agent)
