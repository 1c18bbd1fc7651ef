"""Writes docs/film.svg: a tree of agents at work, made of real screens of the program; only the model is scripted.

Run it in the project's folder, with the environment that ``make`` makes: ``.venv/bin/python -m scripts.film``.
"""

from __future__ import annotations

import asyncio
import itertools
import threading

from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.tui.app import MeshApp
from scripts.frames import Film
from scripts.stage import PATIENCE, ROOT, forks, opened, report, until, waits

_SIZE = (92, 27)
_TITLE = "A root agent forks four helpers, waits, is sent their reports; a message steers one of them while it runs."
_TASK = "Review this directory"
_MESSAGE = "Leave out the slow tests"
_ANSWER = """\
All four have reported:

- **files**: nine folders, nothing stray
- **code**: it reads well
- **tests**: every verb is covered, the slow ones left out
- **lint**: clean"""

_GO_ON = {name: threading.Event() for name in ("file-reader", "code-analyzer", "test-runner", "linter", "root")}
"""Each agent's last answer waits for its cue, so that every screen of the story can be seen."""
_RUNNER = itertools.count()
"""Counts the calls of the test-runner, whose steps begin anew with your message."""
_FIRST = {
    "file-reader": (ScriptedCall("glob", {"pattern": "*"}),),
    "code-analyzer": (ScriptedCall("grep", {"pattern": "TODO"}), ScriptedCall("read", {"path": "pyproject.toml"})),
    "test-runner": (ScriptedCall("glob", {"pattern": "tests/store/*.py"}),),
    "linter": (ScriptedCall("glob", {"pattern": "**/*.toml"}),),
}
_CALLS = {name: len(calls) for name, calls in _FIRST.items()}
_REPORTS = {
    "file-reader": "Nine folders, nothing stray.",
    "code-analyzer": "It reads well.",
    "linter": "Clean.",
}


def main() -> None:
    """Play the story, and write down its screens."""
    film = Film(*_SIZE)
    with opened(_model) as app:
        asyncio.run(_played(app, film))
    (ROOT / "docs" / "film.svg").write_text(film.svg(_TITLE), encoding="utf-8")


def _model(view: ChatRequestView) -> ScriptedReply:
    if view.agent == "root":
        return _root(view.step)
    if view.agent == "test-runner":
        return _runner(next(_RUNNER))
    if view.step == 0:
        return ScriptedReply(tool_calls=_FIRST[view.agent])
    if view.step == 1:
        _GO_ON[view.agent].wait(PATIENCE)
        return report(_REPORTS[view.agent])
    return ScriptedReply("That is all.")


def _root(step: int) -> ScriptedReply:
    if step == 0:
        return forks()
    if step == 1:
        return waits()
    _GO_ON["root"].wait(PATIENCE)
    return ScriptedReply(_ANSWER)


def _runner(call: int) -> ScriptedReply:
    if call == 0:
        return ScriptedReply(tool_calls=_FIRST["test-runner"])
    if call == 1:
        _GO_ON["test-runner"].wait(PATIENCE)
        return ScriptedReply(tool_calls=(ScriptedCall("grep", {"pattern": "def test_", "path": "tests/store"}),))
    if call == 2:
        _GO_ON["root"].wait(PATIENCE)
        return report("Every verb is covered. The slow tests are left out, as I was told.")
    return ScriptedReply("That is all.")


async def _played(app: MeshApp, film: Film) -> None:
    def take(caption: str, seconds: float) -> None:
        film.add(app.screen._compositor.render_strips(), caption, seconds)  # noqa: SLF001

    async with app.run_test(size=_SIZE) as pilot:
        await until(app, "Message root")
        for typed in ("", "Review", " this directory"):
            await pilot.press(*typed)
            await pilot.pause(0.05)
            take("You type one task.", 0.7)
        await pilot.press("enter")
        at_work = rf"(?s){'.*'.join(rf'{name} +◐ running +{calls} call' for name, calls in _CALLS.items())}"
        await until(app, at_work)
        await until(app, r"(?s)\A(?!.*no price is known)")  # said once of every model that a script plays
        take("The root forks four helpers. Each knows all that the root knows, and all run at once.", 3.2)
        for name, rest in (("linter", "linter"), ("file-reader", "reader"), ("code-analyzer", "analyzer")):
            _GO_ON[name].set()
            await until(app, rf"{rest} +✓ received")
            take("The root waits. Each report is delivered once, and kept.", 1.4)
        await pilot.press("ctrl+down", "ctrl+left")
        await until(app, "› test-runner")
        take("Go to any agent while it runs …", 2.2)
        await pilot.press(*_MESSAGE)
        await pilot.pause(0.05)
        take("… and talk to it.", 1.4)
        await pilot.press("enter")
        await pilot.pause(0.5)
        take("… and talk to it.", 1.2)
        _GO_ON["test-runner"].set()
        await until(app, r"grep")
        await pilot.pause(0.5)
        take("It reads your message at its next step.", 2.4)
        await pilot.press("ctrl+up")
        _GO_ON["root"].set()
        await until(app, r"(?s)lint: clean")
        await pilot.pause(0.5)
        take("All have reported. A crash would have cost at most the step that was in flight.", 5.0)


if __name__ == "__main__":
    main()
