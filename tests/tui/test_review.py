"""/diff: changes by file, and notes on lines that go to the agent as one message."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from textual.widgets import Input

from agentmesh.domain.changes import Change, lines_of, remark
from agentmesh.domain.rows import Ref
from agentmesh.tui.commands.calls import SAY, Call, Done, Review
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.review.diff_view import ReviewView
from agentmesh.tui.review.page import ReviewPage
from tests.fixtures.mesh import Mesh
from tests.store.test_changes import edit
from tests.tui.faces import id_of
from tests.tui.piloting import ROOT, Show, asked, enter, puppet

CALC = (
    "--- a/calc.py\n+++ b/calc.py\n@@ -10,3 +10,3 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n # [/x]\n"
)


SHORT = "@@ -1 +1 @@\n-one\n+two\n"


def changed(
    agent: str = "root", path: str = "calc.py", diff: str = CALC, seq: int = 1, tool: str = "edit", minute: int = 0
) -> Change:
    lines = lines_of("edit", None, None, {"path": path, "diff": diff})
    return Change(id_of(agent), agent, seq, tool, path, datetime(2026, 1, 1, 12, minute, tzinfo=UTC), lines)


def reviewed(*changes: Change, is_cut: bool = False) -> Done:
    below = any(one.name != "root" for one in changes)
    return Done(review=Review(Ref(ROOT, "root"), changes, is_cut=is_cut, has_below=below))


async def opened(show: Show, *changes: Change, is_cut: bool = False) -> ReviewView:
    await enter(show, "/diff")
    await show.post(ActionDone(asked(show)[-1], ROOT, reviewed(*changes, is_cut=is_cut)))
    await show.until(lambda: isinstance(show.app.screen, ReviewPage))
    return show.app.screen.query_one(ReviewView)


async def note(show: Show, text: str, *keys: str) -> None:
    """Move with these keys, and make a note there."""
    await show.press(*keys, "c")
    await show.type(text)
    await show.press("enter")


def test_notes_on_lines_go_to_the_agent_as_one_message():
    async def scene(show: Show) -> None:
        await opened(show, changed(), changed("helper", "other.py", seq=2))
        await show.sees("root and all below it: 2 files, +2 −2", "(bash)")
        await show.sees("calc.py  +1 −1", "edited by root", "11 -    return a - b", "11 +    return a + b", "# [/x]")
        await note(show, "b - a?", *["down"] * 4)
        await show.sees("✎ b - a?", "s sends 1 note")
        await note(show, "Good.", "down")
        await note(show, "Delete it.", "n", "down")
        await show.press("s")
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))
        text = (
            "Notes on changes:\n\n"
            "calc.py:11 (removed)\n> -    return a - b\nb - a?\n\n"
            "calc.py:11\n> +    return a + b\nGood.\n\n"
            "other.py (changed by helper)\nDelete it."
        )
        assert asked(show)[-1] == Call(SAY, (text,), text)
        await opened(show, changed())
        assert "✎" not in show.text

    app = puppet(scene)
    assert app.hand.asked[-2][1] == ROOT


def test_a_note_goes_to_its_file_if_one_call_changed_several():
    async def scene(show: Show) -> None:
        await opened(show, changed(path="big.py", tool="bash"), changed(path="small.py", diff=SHORT, tool="bash"))
        await note(show, "Why?", *["down"] * 6)
        await note(show, "And this?", "n", *["down"] * 4)
        assert show.text.count("✎") == 2
        await show.press("s")
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))
        text = "Notes on changes:\n\nbig.py:12\n>  # [/x]\nWhy?\n\nsmall.py:1\n> +two\nAnd this?"
        assert asked(show)[-1] == Call(SAY, (text,), text)

    puppet(scene)


def test_notes_on_undo_and_redo_of_a_file_are_told_apart():
    async def scene(show: Show) -> None:
        await opened(show, changed(seq=0, tool="undo", minute=1), changed(seq=0, diff=SHORT, tool="redo", minute=2))
        await note(show, "Why?", *["down"] * 5)
        assert show.text.count("✎") == 1
        await show.press("s")
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))
        text = "Notes on changes:\n\ncalc.py:11\n> +    return a + b\nWhy?"
        assert asked(show)[-1] == Call(SAY, (text,), text)

    puppet(scene)


def test_a_note_whose_line_is_no_longer_kept_is_sent_without_its_place():
    gone = replace(changed(), lines=remark("the text of this change is no longer kept"))

    async def scene(show: Show) -> None:
        await opened(show, changed())
        await note(show, "Why?", *["down"] * 5)
        await show.press("q")
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))
        await opened(show, gone)
        await show.press("s")
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))
        assert asked(show)[-1] == Call(SAY, ("Notes on changes:\n\nWhy?",), "Notes on changes:\n\nWhy?")

    puppet(scene)


def test_notes_stay_when_the_page_is_left_and_can_be_changed_and_removed():
    async def scene(show: Show) -> None:
        await opened(show, changed())
        await note(show, "first", *["down"] * 3)
        await show.press("c")
        await show.type("dropped")
        await show.press("escape")
        await show.until(lambda: not show.app.screen.query_one(Input).display)
        await show.sees("✎ first", "Esc leaves, notes stay")
        assert "dropped" not in show.text
        await show.press("q")
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))
        await opened(show, changed())
        await show.sees("✎ first")
        await show.press(*["down"] * 3, "enter")
        assert show.app.screen.query_one(Input).value == "first"
        await show.press("ctrl+u", "enter")
        await show.until(lambda: "✎" not in show.text)
        await show.press("s")
        await show.sees("There is no note to send")
        await show.press("up", "up", "up", "up", "c")
        await show.sees("This line can have no note")

    assert [call.name for call in puppet(scene).calls] == ["diff", "diff"]


def test_a_click_moves_and_a_double_click_notes():
    async def scene(show: Show) -> None:
        view = await opened(show, changed())
        await show.pilot.click(ReviewView, offset=(9, 5))
        assert view._cursor == 5
        await show.pilot.click(ReviewView, offset=(9, 5), times=2)
        await show.until(lambda: show.app.screen.query_one(Input).has_focus)

    puppet(scene)


@pytest.mark.parametrize("size", [(40, 10), (40, 12), (80, 24), (160, 50)])
def test_it_fits_every_terminal(size):
    async def scene(show: Show) -> None:
        view = await opened(show, *(changed(path=f"file-{n}.py", seq=n) for n in range(20)))
        assert view.size.height >= 2
        await note(show, "a note", "n", "down", "down", "down")
        await show.sees("✎ a note", "sends 1 note")
        await show.press("G")
        await show.sees("# [/x]")
        await show.press("c")
        field = show.app.screen.query_one(Input)
        await show.until(lambda: field.region.height == 1 and field.region.bottom <= size[1])
        assert view.size.height >= 1

    puppet(scene, size=size)


def test_long_lines_are_scrolled_to():
    async def scene(show: Show) -> None:
        await opened(show, changed(diff="@@ -1 +1 @@\n+" + "x" * 90 + "THE END\n"))
        assert "THE END" not in show.text
        await show.press(*["right"] * 8)
        await show.sees("THE END")

    puppet(scene)


def test_ten_thousand_lines_are_moved_through_at_once():
    diff = "@@ -1,12000 +1,12000 @@\n" + "".join(f"+line {n} {'x' * 60}\n" for n in range(12_000))

    async def scene(show: Show) -> None:
        began = time.monotonic()
        await opened(show, changed(diff=diff), is_cut=True)
        await show.sees("The newest 1 changes")
        for keys in (["G"], ["pageup"] * 5, ["g"], ["down"] * 5):
            await show.press(*keys)
        await note(show, "here", "G")
        await show.sees("line 11999", "✎ here")
        assert time.monotonic() - began < 10  # it takes less than two seconds; a page of widgets would take minutes

    puppet(scene)


def test_from_the_rows_to_the_message(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child", "work")
    edit(mesh, child)
    mesh.answer(child)

    async def scene(show: Show) -> None:
        await enter(show, "/diff root")
        await show.sees("root and all below it: 1 file", "edited by child")
        await show.press("escape")
        await enter(show, "/diff child")
        await show.sees("child: 1 file")
        await note(show, "Why?", *["down"] * 5)
        await show.press("s")
        await show.until(lambda: mesh.unread(child))

    on_screen(scene)
    assert mesh.unread(child) == ["Notes on changes:\n\ncalc.py:11\n> +    return a + b\nWhy?"]


def test_without_a_change_a_sentence_says_what_is_not_known(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        await enter(show, "/diff")
        await show.sees("root has changed no file by edit or write. Not in it: changes by commands")

    on_screen(scene)
