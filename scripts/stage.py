"""The real screen on a database of its own, played by a scripted model: what pictures of it are taken from."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from textual.app import App

from agentmesh.app import open_mesh
from agentmesh.app.worker import make_worker
from agentmesh.config.settings import load
from agentmesh.domain.states import PermissionMode
from agentmesh.llm.simulator.reply import Responder, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store import sessions
from agentmesh.tui.app import MeshApp
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.link import Opened

ROOT = Path(__file__).parent.parent
PATIENCE = 30.0
_PLACE = "agentmesh (main)"
"""What pictures show of the directory, in whichever checkout they are made."""
HELPERS = {
    "file-reader": "Which files are here?",
    "code-analyzer": "What is the code like?",
    "test-runner": "What do the tests cover?",
    "linter": "Is there anything to lint?",
}
"""The agents that the root of every picture forks, each with its task."""


@contextmanager
def opened(
    model: Responder,
    *,
    workdir: Path = ROOT,
    mode: PermissionMode | None = None,
    look: str = "auto",
    title: str = "Review",
) -> Iterator[MeshApp]:
    """Yield the terminal UI of a new session, by default in this checkout; a worker runs its agents with this model."""
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder, Simulator(model) as simulator:
        Path(folder).chmod(0o711)  # as root the server belongs to a user of its own, who has to pass
        environ = {"HOME": folder, "OPENAI_BASE_URL": simulator.base_url, "OPENAI_API_KEY": "none"}
        given = {"data_dir": folder, "concurrency": "64", "max_children": "64"}
        settings = load(given, environ, workdir)
        with open_mesh(settings, role="tui", what="make screenshots", environ=environ) as mesh:
            session = mesh.start_session(workdir, model="scripted", title=title, mode=mode)
            make_worker(mesh, session=session.id).start()
            with patch(
                "agentmesh.tui.session.surroundings.place_of", lambda place: _PLACE if place == ROOT else place.name
            ):
                yield MeshApp(lambda: Opened(mesh, session), keymap=Keymap(), look=look)
            mesh.database.run(sessions.end_session, session.id)


def report(text: str) -> ScriptedReply:
    """Return the answer of a child that sends this to its parent."""
    return ScriptedReply(tool_calls=(ScriptedCall("send", {"to": "parent", "message": text}),))


def forks() -> ScriptedReply:
    """Return the root's first answer, which forks the helpers."""
    calls = (ScriptedCall("fork", {"name": name, "prompt": prompt}) for name, prompt in HELPERS.items())
    return ScriptedReply("Four questions, four helpers, **at once**.", tool_calls=tuple(calls))


def waits() -> ScriptedReply:
    """Return the root's second answer, which waits for all of them."""
    wait = ScriptedCall("wait", {"timeout": 300, "from_agents": list(HELPERS)})
    return ScriptedReply("Each reports to me when it has an answer.", tool_calls=(wait,))


async def until(app: App[Any], wanted: str) -> None:
    """Wait until this is on the screen."""
    deadline = time.monotonic() + PATIENCE
    while not re.search(wanted, text := "\n".join(s.text for s in app.screen._compositor.render_strips())):  # noqa: SLF001
        if time.monotonic() > deadline:
            raise TimeoutError(f"{wanted} is not in\n{text}")
        await asyncio.sleep(0.02)
