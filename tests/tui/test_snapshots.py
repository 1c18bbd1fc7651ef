"""How the main states look: a few named pictures. AGENTMESH_UPDATE_SNAPSHOTS=1 draws them anew; look at them then."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agentmesh.domain.states import Kind
from agentmesh.tui.session.messages import RowsArrived
from tests.tui.faces import asking, face, id_of, request, waiting
from tests.tui.piloting import Show, called, puppet, result, said

FOLDER = Path(__file__).parent / "snapshots"
TEAM = (
    face("file-reader", status="running", activity="tool: bash", tool_calls=22, tokens=13_000),
    face("code-analyzer", tool_calls=13, tokens=11_000),
    face("test-runner", tool_calls=9, tokens=14_000),
    face("linter", status="dead", tool_calls=2, tokens=1_000),
)
ASKED = said(1, "Look at this directory and sum up what you find.", Kind.USER)
WORK = (
    ASKED,
    called(2, "bash", '{"command": "git log --oneline -5 | head"}', "I look at the **history** first."),
    result(3, 2, "bash", {"exit_code": 0, "output": "a\nb\nc\n"}),
    called(4, "edit", '{"path": "src/app.py"}'),
    result(5, 4, "edit", {"path": "src/app.py", "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"}),
    called(6, "read", '{"path": "nope.txt"}'),
    result(7, 6, "read", {"error": "There is no file nope.txt."}),
)
PUSH = request("file-reader", arguments={"command": "git push origin main --tags"})
WAIT = called(8, "wait", '{"timeout": 60, "from_agents": ["a", "b", "c", "d"]}', "Now I wait for all four.")


def root(**more):
    return face("root", None, "running", tool_calls=10, tree_tokens=42_000, running_for=12.0, **more)


async def streaming(show: Show) -> None:
    await show.board(root(activity="thinking"), *TEAM, read_at=FUTURE)
    await show.rows(*WORK)
    await show.stream(
        "## What I found\n\n- one `thing`\n- another *thing*\n\n```python\ndef answer():\n    return 42\n"
    )


async def fan_in(show: Show) -> None:
    wait = waiting("file-reader", "code-analyzer", "test-runner", "linter", received=("code-analyzer",), left=0.0)
    await show.board(root(activity="waiting", wait=wait), *TEAM, read_at=FUTURE)
    await show.rows(*WORK, WAIT)


async def side_tree(show: Show) -> None:
    await fan_in(show)
    await show.press("ctrl+t")
    await show.sees("├ ◐ file-reader")


async def capture(show: Show) -> None:
    await show.board(face("root", None, capturing=True), *TEAM)
    begun = said(2, "capturing: what you type is kept from every model", Kind.EVENT, event="capture_begun")
    await show.rows(ASKED, begun, said(3, "a first thought", Kind.CAPTURE), said(4, "a second", Kind.CAPTURE))
    await show.type("third")


async def dead(show: Show) -> None:
    await show.board(*TEAM)
    await show.press("ctrl+down")
    prompt = said(1, "Run the linter.", Kind.MAIL, "linter", name="root", introduces={"name": "linter"})
    killed = said(3, "killed by root", Kind.EVENT, "linter", event="killed")
    step = said(2, "I begin.", agent="linter", calls=[{"id": "x", "name": "bash", "arguments": '{"command": "ruff"}'}])
    await show.post(RowsArrived(id_of("linter"), [prompt, step, killed], [ASKED], False, True, 7))


async def picker(show: Show) -> None:
    await show.board(root(activity="thinking"), *TEAM, read_at=FUTURE)
    await show.rows(*WORK)
    await show.press("ctrl+p", "r")


async def asking_dialog(show: Show) -> None:
    await show.board(
        root(activity="thinking"), *TEAM[1:], asking("file-reader", PUSH, request("linter", number=2)), read_at=FUTURE
    )
    await show.rows(*WORK)
    await show.sees("file-reader asks", "Esc later")


async def asking_banner(show: Show) -> None:
    await show.type("I was just about to say")
    await show.board(root(activity="thinking"), *TEAM[1:], asking("file-reader", PUSH), read_at=FUTURE)
    await show.rows(*WORK)
    await show.press("ctrl+t")
    await show.sees("! file-reader asks", "! file-reader needs")


FUTURE = time.monotonic() + 10**6
"""When the boards say that they were read: so no second passes while they are shown."""
SCENES: dict[str, tuple[Callable[[Show], Awaitable[None]], tuple[int, int]]] = {
    "streaming": (streaming, (100, 32)),
    "fan-in": (fan_in, (100, 32)),
    "side-tree": (side_tree, (110, 30)),
    "capture": (capture, (80, 24)),
    "dead": (dead, (80, 24)),
    "picker": (picker, (80, 24)),
    "80x24": (fan_in, (80, 24)),
    "request": (asking_dialog, (80, 24)),
    "request-banner": (asking_banner, (110, 24)),
}


@pytest.mark.parametrize("name", SCENES)
def test_it_looks_as_in_the_picture(name, tmp_path, monkeypatch):
    monkeypatch.setattr("agentmesh.tui.input.quiet_input.QUIET", 0.0)
    monkeypatch.setattr("agentmesh.tui.app._LOOK", 3600.0)  # else what is read around comes into some of them
    scene, size = SCENES[name]
    drawn: list[str] = []

    async def draw(show: Show) -> None:
        await scene(show)
        await show.settled()
        drawn.append(_normal(show.app.export_screenshot()))

    puppet(draw, size=size)
    known = FOLDER / f"{name}.svg"
    if os.environ.get("AGENTMESH_UPDATE_SNAPSHOTS"):
        known.write_text(drawn[0], encoding="utf-8")
    (tmp_path / known.name).write_text(drawn[0], encoding="utf-8")
    assert drawn[0] == known.read_text(encoding="utf-8"), f"it looks otherwise: compare {tmp_path / known.name}"


def _normal(svg: str) -> str:
    """Return a picture without what says nothing: ids made of its own checksum."""
    return re.sub(r"terminal-\d+", "terminal", svg)
