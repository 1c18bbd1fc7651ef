"""The last line: keys that have room, and texts that replace them."""

from __future__ import annotations

import pytest

from agentmesh.tui.input.key_line import KeyLine
from tests.tui.piloting import Show, puppet


@pytest.mark.parametrize(
    ("width", "last"), [(40, "Ctrl+← prev"), (60, "Ctrl+→ next"), (80, "Ctrl+↓ child"), (120, "F12 board")]
)
def test_the_keys_that_have_room_are_shown_whole(width: int, last: str):
    async def scene(show: Show) -> None:
        assert show.lines[-1].endswith(last)

    puppet(scene, size=(width, 24))


def test_keys_come_and_go_with_the_width():
    async def scene(show: Show) -> None:
        await show.pilot.resize_terminal(120, 24)
        await show.sees("F12 board")
        await show.pilot.resize_terminal(60, 24)
        await show.until(lambda: show.lines[-1].endswith("Ctrl+→ next"))

    puppet(scene)


def test_what_happened_elsewhere_takes_one_line_however_much_it_is():
    async def scene(show: Show) -> None:
        line = show.app.main.query_one(KeyLine)
        for name in ("export-reader", "export-linter", "screen-tester", "screen-writer"):
            line.tell(f"{name} finished", "$foreground")
        await show.until(lambda: show.lines[-1].endswith("screen-writer finished"))
        assert show.lines[-1].strip() == "2 more · screen-tester finished · screen-writer finished"
        assert line.size.height == 1

    puppet(scene)


def test_a_long_reply_has_as_many_lines_as_it_needs():
    async def scene(show: Show) -> None:
        line = show.app.main.query_one(KeyLine)
        line.say("word " * 30)
        await show.until(lambda: line.size.height == 2)

    puppet(scene)
