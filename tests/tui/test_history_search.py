"""Ctrl+R: the inputs of before in a list that is filtered while a person types."""

from __future__ import annotations

from agentmesh.tui.widgets.fuzzy import containing
from tests.tui.piloting import Show, asked, enter, family, puppet


def test_the_newest_comes_first_and_enter_puts_it_into_the_input():
    async def scene(show: Show) -> None:
        for text in ("run the tests", "look at the README", "run the linter", "look at the README"):
            await enter(show, text)
        await show.type("half a thought")
        await show.press("ctrl+r")
        await show.sees("Earlier inputs")
        listed = [line.strip(" │▊▎") for line in show.lines if "the " in line and "▌" not in line]
        assert [text for text in listed if text in ("look at the README", "run the linter", "run the tests")] == [
            "look at the README",
            "run the linter",
            "run the tests",
        ]
        await show.type("run the")
        await show.until(lambda: "look at" not in "\n".join(show.lines[2:12]))
        await show.press("down", "enter")
        assert show.typed == "run the tests"
        assert len(asked(show)) == 4, "it was put into the input, not sent"

    puppet(scene)


def test_escape_leaves_what_was_typed():
    async def scene(show: Show) -> None:
        await enter(show, "one")
        await show.type("half a thought")
        await show.press("ctrl+r", "escape")
        assert show.typed == "half a thought"

    puppet(scene)


def test_a_draft_that_was_replaced_comes_back_with_the_history():
    async def scene(show: Show) -> None:
        await enter(show, "one")
        await show.type("half a thought")
        await show.press("ctrl+r", "enter")
        assert show.typed == "one"
        await show.press("up")
        assert show.typed == "half a thought"
        await show.press("up", "x")
        assert show.typed == "onex"
        await show.press("up")
        assert show.typed == "half a thought"

    puppet(scene)


def test_a_walk_ends_with_its_agent():
    async def scene(show: Show) -> None:
        await enter(show, "one")
        await show.board(*family())
        await show.press("ctrl+down", "f7")
        here = show.in_view
        await show.type("for the second")
        await show.press("f8")
        assert show.in_view != here
        await show.type("for the first")
        await show.press("up")
        assert show.typed == "one"
        await show.press("f7")
        assert (show.in_view, show.typed) == (here, "for the second")
        await show.press("down")
        assert show.typed == "for the second"
        await show.press("up")
        assert show.typed == "for the first"

    puppet(scene)


def test_several_lines_come_back_whole():
    async def scene(show: Show) -> None:
        await enter(show, "one\ntwo\nthree")
        await show.press("ctrl+r")
        await show.sees("one two three", "3 lines")
        await show.press("enter")
        assert show.typed == "one\ntwo\nthree"

    puppet(scene)


def test_without_any_the_list_says_so():
    async def scene(show: Show) -> None:
        await show.press("ctrl+r")
        await show.sees("nothing matches")
        await show.press("escape")

    puppet(scene)


def test_every_word_must_be_there_and_capitals_count_only_if_typed():
    texts = ["Run Tests", "tests run", "run", "other"]
    assert containing("run tests", texts, str, 9) == ["Run Tests", "tests run"]
    assert containing("Run", texts, str, 9) == ["Run Tests"]
    assert containing("", texts, str, 2) == texts[:2]


def test_undo_has_a_key_since_ctrl_z_suspends():
    async def scene(show: Show) -> None:
        await show.type("one two")
        await show.press("ctrl+w")
        assert show.typed == "one "
        await show.press("ctrl+underscore")
        assert show.typed == "one two"

    puppet(scene)
