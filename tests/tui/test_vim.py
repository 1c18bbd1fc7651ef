"""Vim's keys in the input."""

from __future__ import annotations

import pytest

from tests.tui.faces import face
from tests.tui.piloting import Show, asked, puppet

TEXT = "one two, three\n  four five\nsix"


async def normal(show: Show, text: str = TEXT, at: tuple[int, int] = (0, 0)) -> None:
    prompt = show.app.main.composer.prompt
    prompt.use_vim()
    prompt.put(text)
    prompt.move_cursor(at)
    await show.press("escape")
    prompt.move_cursor(at)


@pytest.mark.parametrize(
    ("at", "keys", "then"),
    [
        ((0, 0), "l", (0, 1)),
        ((0, 0), "3l", (0, 3)),
        ((0, 2), "h", (0, 1)),
        ((0, 0), "h", (0, 0)),
        ((0, 0), "w", (0, 4)),
        ((0, 0), "2w", (0, 7)),
        ((0, 8), "4w", (2, 0)),
        ((0, 9), "b", (0, 7)),
        ((0, 0), "e", (0, 2)),
        ((0, 2), "e", (0, 6)),
        ((1, 8), "0", (1, 0)),
        ((1, 8), "^", (1, 2)),
        ((1, 0), "$", (1, 10)),
        ((1, 3), "gg", (0, 0)),
        ((0, 3), "G", (2, 0)),
        ((0, 3), "j", (1, 3)),
        ((2, 1), "k", (1, 1)),
        ((2, 1), "2k", (0, 1)),
        ((0, 0), "dgw", (0, 0)),
    ],
)
def test_motions(at, keys, then):
    async def scene(show: Show) -> None:
        await normal(show, at=at)
        await show.type(keys)
        assert show.app.main.composer.prompt.cursor_location == then
        assert show.typed == TEXT

    puppet(scene)


@pytest.mark.parametrize(
    ("at", "keys", "then"),
    [
        ((0, 0), "x", "ne two, three\n  four five\nsix"),
        ((0, 0), "3x", " two, three\n  four five\nsix"),
        ((0, 0), "dw", "two, three\n  four five\nsix"),
        ((0, 9), "dw", "one two, \n  four five\nsix"),
        ((0, 0), "cwten", "ten two, three\n  four five\nsix"),
        ((0, 4), "db", "two, three\n  four five\nsix"),
        ((0, 0), "de", " two, three\n  four five\nsix"),
        ((0, 4), "D", "one \n  four five\nsix"),
        ((0, 4), "Cx", "one x\n  four five\nsix"),
        ((1, 4), "dd", "one two, three\nsix"),
        ((2, 0), "dd", "one two, three\n  four five"),
        ((0, 0), "2dd", "six"),
        ((0, 0), "9dd", ""),
        ((0, 0), "dj", "six"),
        ((0, 0), "dG", ""),
        ((1, 4), "ccx", "one two, three\nx\nsix"),
        ((0, 0), "yyp", "one two, three\none two, three\n  four five\nsix"),
        ((2, 0), "yyP", "one two, three\n  four five\nsix\nsix"),
        ((0, 0), "ywP", "one one two, three\n  four five\nsix"),
        ((0, 0), "xp", "noe two, three\n  four five\nsix"),
        ((0, 0), "ddp", "  four five\none two, three\nsix"),
        ((0, 0), "ddu", TEXT),
        ((0, 0), "xxuu", TEXT),
        ((0, 0), "iX", f"X{TEXT}"),
        ((0, 0), "aX", f"oX{TEXT[1:]}"),
        ((1, 5), "IX", "one two, three\n  Xfour five\nsix"),
        ((1, 5), "AX", "one two, three\n  four fiveX\nsix"),
        ((0, 5), "oX", "one two, three\nX\n  four five\nsix"),
        ((1, 5), "OX", "one two, three\nX\n  four five\nsix"),
        ((0, 0), "zqdzx", "ne two, three\n  four five\nsix"),
    ],
)
def test_changes(at, keys, then):
    async def scene(show: Show) -> None:
        await normal(show, at=at)
        await show.type(keys)
        assert show.typed == then

    puppet(scene)


def test_escape_goes_to_normal_mode_and_only_a_second_one_interrupts():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"))
        show.app.main.composer.prompt.use_vim()
        await show.type("hello")
        await show.press("escape")
        await show.sees("(normal) ❯ hello")
        assert asked(show) == []
        await show.press("d", "escape")
        assert asked(show) == [], "it took back the d"
        await show.press("escape")
        assert [call.name for call in asked(show)] == ["interrupt"]

    puppet(scene)


def test_enter_sends_in_normal_mode_and_insert_mode_follows():
    async def scene(show: Show) -> None:
        await normal(show, "hello")
        await show.press("enter")
        assert [call.args for call in asked(show)] == [("hello",)]
        await show.type("k")
        assert show.typed == "k"
        assert "normal" not in show.text
        await show.press("escape", "k")
        assert show.typed == "hello", "k walks through the history at the first line"

    puppet(scene)


def test_without_the_setting_escape_interrupts_at_once():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"))
        await show.type("x")
        await show.press("escape")
        assert [call.name for call in asked(show)] == ["interrupt"]

    puppet(scene)


def test_a_long_paste_is_deleted_as_one():
    async def scene(show: Show) -> None:
        prompt = show.app.main.composer.prompt
        prompt.put(prompt._pastes.fold("\n".join("x" * 30)) + " end")
        prompt.use_vim()
        await show.press("escape")
        await show.type("0x")
        assert show.typed == " end"

    puppet(scene)
