"""Writes docs/screenshot.svg: the TUI as it is, on a database of its own; only the model is scripted.

Run it in the project's folder, with the environment that ``make`` makes: ``.venv/bin/python -m scripts.screenshot``.
"""

from __future__ import annotations

import asyncio

from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.tui.app import MeshApp
from scripts.stage import PATIENCE, ROOT, forks, opened, report, until, waits

_SIZE = (100, 32)
_STEPS = {
    "file-reader": (ScriptedReply(tool_calls=(ScriptedCall("glob", {"pattern": "*"}),)), report("Twelve folders.")),
    "code-analyzer": (
        ScriptedReply(
            tool_calls=(ScriptedCall("grep", {"pattern": "TODO"}), ScriptedCall("read", {"path": "README.md"}))
        ),
        report("It reads well."),
    ),
    "linter": (ScriptedReply("Nothing to lint."),),
}


def main() -> None:
    """Let four helpers work, and draw the screen while the root waits for them."""
    with opened(_model) as app:
        svg = asyncio.run(_drawn(app))
    (ROOT / "docs" / "screenshot.svg").write_text(svg + "\n", encoding="utf-8")


def _model(view: ChatRequestView) -> ScriptedReply:
    if view.agent == "root":
        return forks() if view.step == 0 else waits()
    if view.agent == "test-runner":
        glob = ScriptedCall("glob", {"pattern": "tests/**/*.py"})
        return ScriptedReply(tool_calls=(glob,)) if not view.step else ScriptedReply(first_byte_delay=PATIENCE)
    steps = _STEPS[view.agent]
    return steps[view.step] if view.step < len(steps) else ScriptedReply("That is all.")


async def _drawn(app: MeshApp) -> str:
    async with app.run_test(size=_SIZE) as pilot:
        await until(app, "Message root")
        await pilot.press(*"Review this directory", "enter")
        await until(app, r"(?s)reader +✓ received.*analyzer +✓ received.*runner +◐ running .*1 call .*linter +○ idle")
        return app.export_screenshot(title="agentmesh")


if __name__ == "__main__":
    main()
