"""Writes docs/screenshot.svg: the TUI as it is, on a database of its own; only the model is scripted.

Run it in the project's folder, with the environment that ``make`` makes: ``.venv/bin/python -m scripts.screenshot``.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from pathlib import Path

from agentmesh.app import open_mesh
from agentmesh.config.settings import load
from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store import sessions
from agentmesh.tui.app import MeshApp
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.link import Opened

_ROOT = Path(__file__).parent.parent
_SIZE = (100, 32)
_PATIENCE = 30.0
_HELPERS = {
    "file-reader": "Which files are here?",
    "code-analyzer": "What is the code like?",
    "test-runner": "What do the tests cover?",
    "linter": "Is there anything to lint?",
}


def _report(text: str) -> ScriptedReply:
    return ScriptedReply(tool_calls=(ScriptedCall("send", {"to": "parent", "message": text}),))


_STEPS = {
    "file-reader": (ScriptedReply(tool_calls=(ScriptedCall("glob", {"pattern": "*"}),)), _report("Twelve folders.")),
    "code-analyzer": (
        ScriptedReply(
            tool_calls=(ScriptedCall("grep", {"pattern": "TODO"}), ScriptedCall("read", {"path": "README.md"}))
        ),
        _report("It reads well."),
    ),
    "linter": (ScriptedReply("Nothing to lint."),),
}


def main() -> None:
    """Let four helpers work, and draw the screen while the root waits for them."""
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder, Simulator(_model) as simulator:
        Path(folder).chmod(0o711)  # as root the server belongs to a user of its own, who has to pass
        environ = {"HOME": folder, "OPENAI_BASE_URL": simulator.base_url, "OPENAI_API_KEY": "none"}
        settings = load({"data_dir": folder}, environ, _ROOT)
        with open_mesh(settings, role="tui", what="make screenshots", environ=environ) as mesh:
            session = mesh.start_session(_ROOT, model="scripted", title="Review")
            mesh.worker(session=session.id).start()
            svg = asyncio.run(_drawn(MeshApp(lambda: Opened(mesh, session), keymap=Keymap())))
            mesh.database.run(sessions.end_session, session.id)
    (_ROOT / "docs" / "screenshot.svg").write_text(svg + "\n", encoding="utf-8")


def _model(view: ChatRequestView) -> ScriptedReply:
    if view.agent == "root":
        return _root(view.step)
    if view.agent == "test-runner":
        glob = ScriptedCall("glob", {"pattern": "tests/**/*.py"})
        return ScriptedReply(tool_calls=(glob,)) if not view.step else ScriptedReply(first_byte_delay=_PATIENCE)
    steps = _STEPS[view.agent]
    return steps[view.step] if view.step < len(steps) else ScriptedReply("That is all.")


def _root(step: int) -> ScriptedReply:
    if step == 0:
        forks = (ScriptedCall("fork", {"name": name, "prompt": prompt}) for name, prompt in _HELPERS.items())
        return ScriptedReply("Four questions, four helpers, **at once**.", tool_calls=tuple(forks))
    wait = ScriptedCall("wait", {"timeout": 300, "from_agents": list(_HELPERS)})
    return ScriptedReply("Each reports to me when it has an answer.", tool_calls=(wait,))


async def _drawn(app: MeshApp) -> str:
    async with app.run_test(size=_SIZE) as pilot:
        await _until(app, r"\[root\]")
        await pilot.press(*"Review this directory", "enter")
        await _until(app, r"(?s)reader +✓ received.*analyzer +✓ received.*runner +◐ running .*1 call .*linter +○ idle")
        return app.export_screenshot(title="agentmesh")


async def _until(app: MeshApp, wanted: str) -> None:
    """Wait until this is on the screen."""
    deadline = time.monotonic() + _PATIENCE
    while not re.search(wanted, text := "\n".join(s.text for s in app.screen._compositor.render_strips())):  # noqa: SLF001
        if time.monotonic() > deadline:
            raise TimeoutError(f"{wanted} is not in\n{text}")
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    main()
