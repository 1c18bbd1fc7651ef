"""The input, the status line and the keys are on the screen, however much stands above them."""

from __future__ import annotations

import pytest

from agentmesh.domain.ids import MailId
from agentmesh.tui.session.state import Pending
from tests.tui.faces import board, face, waiting
from tests.tui.piloting import Show, puppet

SIZES = [(80, 24), (120, 40), (60, 20), (40, 12), (40, 10)]


def _crowd(count: int):
    names = [f"child-{n}" for n in range(count)]
    pending = tuple(Pending(MailId(n), f"message {n}") for n in range(9))
    root = face("root", None, "running", activity="waiting", wait=waiting(*names), pending=pending)
    return root, *(face(name, status="running", activity="queued") for name in names)


@pytest.mark.parametrize("draft", ["short", "\n".join(f"line {n}" for n in range(30))], ids=["short", "long"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("count", [20, 200])
def test_a_crowd_of_awaited_agents_leaves_the_input_on_the_screen(count, size, draft):
    async def scene(show: Show) -> None:
        await show.board(*_crowd(count))
        show.app.main.composer.prompt.insert(draft)
        await show.settled()
        height = size[1]
        for wanted in ("#composer", "#status-line", "#key-line", "#separator"):
            region = show.app.main.query_one(wanted).region
            assert region.height > 0, wanted
            assert region.bottom <= height, wanted
        assert draft.splitlines()[-1] in show.text
        assert show.app.main.query_one("#status-layer").region.height <= height // 3

    puppet(scene, size=size)


def test_the_layer_follows_the_size_of_the_terminal():
    async def scene(show: Show) -> None:
        await show.board(*_crowd(60))
        await show.sees("… 53 more: 53 queued")
        await show.pilot.resize_terminal(80, 12)
        await show.sees("… 57 more: 57 queued")
        assert show.app.main.query_one("#key-line").region.bottom <= 12
        await show.pilot.resize_terminal(80, 48)
        await show.sees("… 45 more: 45 queued")

    puppet(scene)


def test_nothing_is_cut_if_there_is_room():
    async def scene(show: Show) -> None:
        assert board(*_crowd(3))
        await show.board(*_crowd(3))
        await show.sees("child-0", "child-2")
        assert "more" not in show.text.split("child-2")[1].splitlines()[0]

    puppet(scene)


def test_help_is_few_widgets_and_both_its_columns_fit_a_narrow_terminal():
    async def scene(show: Show) -> None:
        await show.press("f1")
        await show.sees("Commands", "Pick an agent")
        assert len(show.app.screen.query("*")) < 15, "a widget for each line took a second to open"
        await show.sees("/agents [agent] Pick an agent ")

    puppet(scene, size=(40, 20))
