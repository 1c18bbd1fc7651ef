"""What is seen of a conversation, how it streams, folds and scrolls."""

from __future__ import annotations

import re

import pytest

from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.tui.conversation.model_message import ModelMessageView
from agentmesh.tui.conversation.prose import Prose
from agentmesh.tui.conversation.tool_call import ToolCallView
from agentmesh.tui.conversation.views import LIVE
from agentmesh.tui.session.messages import OlderRows, RowsArrived, TextStreamed
from tests.tui.faces import face, id_of
from tests.tui.piloting import ROOT, Show, called, puppet, result, said


def numbers(show: Show) -> list[int]:
    return [int(found) for found in re.findall(r"message (\d+)", show.text)]


def messages(first: int, last: int) -> list[Row]:
    kinds = (Kind.ASSISTANT, Kind.USER)
    return [said(n, f"message {n}\nand its second line", kinds[n % 2]) for n in range(first, last + 1)]


def test_an_empty_root_shows_the_welcome():
    async def scene(show: Show) -> None:
        await show.rows()
        assert "A script plays the model." in show.text

    puppet(scene)


def test_foreign_text_is_never_markup_and_html_does_not_vanish():
    nasty = "[@click=app.exit]press[/] [/x] [bold]b[/bold]"

    async def scene(show: Show) -> None:
        await show.rows(
            said(1, nasty, Kind.USER),
            said(2, f"{nasty}\n\n<div>tag</div>"),
            said(3, nasty, Kind.EVENT),
            called(4, "bash", '{"command": "echo [/x] [@click=app.exit]"}'),
            result(5, 4, "bash", {"error": "[/nope] \x1b[31mred\u202e"}),
        )
        assert show.text.count("[@click=app.exit]press[/] [/x] [bold]b[/bold]") == 3
        assert "<div>tag</div>" in show.text
        assert "echo [/x] [@click=app.exit]" in show.text
        assert "[/nope] [31mred" in show.text

    puppet(scene)


def test_a_call_is_one_line_and_unfolds_to_arguments_and_result():
    async def scene(show: Show) -> None:
        await show.rows(called(1, "bash", '{"command": "git log"}'))
        assert "▸ bash  git log  ◌ runs" in show.text
        await show.rows(result(2, 1, "bash", {"exit_code": 0, "output": "first\nsecond\n"}), first=False)
        assert "▸ bash  git log  ✓ 2 lines" in show.text
        await show.press("tab", "enter")
        assert "▾ bash  git log" in show.text
        assert "command: git log" in show.text
        assert "second" in show.text
        await show.press("enter")
        assert "second" not in show.text

    puppet(scene)


def test_the_keyboard_unfolds_what_it_leads_to():
    async def scene(show: Show) -> None:
        await show.rows(*(called(n, "glob", f'{{"pattern": "p{n}"}}') for n in range(1, 4)))
        await show.press("tab", "up", "up", "up", "enter")
        assert [view.unfolded for view in show.app.main.views.query(ToolCallView)] == [True, False, False]
        await show.press("down", "space", "tab")
        assert [view.unfolded for view in show.app.main.views.query(ToolCallView)] == [True, True, False]
        await show.type("words")
        assert show.typed == "words"
        await show.press("tab", "x")
        assert show.typed == "wordsx", "a letter goes back to the input"

    puppet(scene)


def test_an_error_is_seen_without_unfolding():
    async def scene(show: Show) -> None:
        await show.rows(called(1, "read", '{"path": "x"}'), result(2, 1, "read", {"error": "There is no file x."}))
        assert "▸ read  x  ✗ There is no file x." in show.text

    puppet(scene)


def test_the_outcome_of_a_call_is_seen_however_long_the_call_is():
    async def scene(show: Show) -> None:
        await show.rows(
            called(1, "bash", f'{{"command": "{"long " * 60}"}}'), result(2, 1, "bash", {"exit_code": 3, "output": ""})
        )
        line = next(line for line in show.lines if "bash" in line)
        assert line.endswith("✗ exit 3, no output")
        assert "…" in line

    puppet(scene)


CHANGE = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new\n"


def test_an_edit_shows_its_diff_until_it_is_folded():
    async def scene(show: Show) -> None:
        await show.rows(called(1, "edit", '{"path": "f"}'), result(2, 1, "edit", {"path": "f", "diff": CHANGE}))
        await show.sees("▾ edit  f  ✓ +1 −1", "1 -old", "1 +new")
        await show.press("tab", "enter")
        await show.sees("▸ edit  f  ✓ +1 −1")
        assert "-old" not in show.text
        await show.press("ctrl+o")
        await show.sees("▾ edit", "-old")
        await show.press("ctrl+o")
        await show.until(lambda: "-old" not in show.text)

    puppet(scene)


def test_a_change_opens_when_its_result_arrives_but_not_a_failed_nor_a_long_one():
    long = "@@ -0,0 +1,60 @@\n" + "\n".join(f"+line {n}" for n in range(60))
    failed = {"error": "no such text", "diff": CHANGE}

    async def scene(show: Show) -> None:
        await show.rows(*(called(n, "edit", '{"path": "f"}') for n in (1, 3, 5)))
        assert show.text.count("▸ edit") == 3
        await show.rows(result(2, 1, "edit", {"path": "f", "diff": CHANGE}), first=False)
        await show.sees("1 -old")
        await show.rows(result(4, 3, "edit", failed), result(6, 5, "edit", {"diff": long}), first=False)
        await show.sees("✗ no such text", "✓ +60 −0")
        assert show.text.count("▸ edit") == 2
        await show.press("tab", "enter", "ctrl+end")
        await show.sees("60 +line 59")

    puppet(scene)


def test_a_new_file_is_shown_with_its_lines():
    arguments = '{"path": "a.py", "content": "x = 1\\n\\ty = 2"}'

    async def scene(show: Show) -> None:
        await show.rows(called(1, "write", arguments), result(2, 1, "write", {"bytes": 9, "created": True}))
        await show.sees("▾ write  a.py  ✓ created, 9 bytes", "1 +x = 1", "2 +    y = 2")

    puppet(scene)


def test_unfolding_all_calls_holds_for_those_to_come():
    async def scene(show: Show) -> None:
        await show.rows(called(1, "bash", '{"command": "one"}'))
        await show.press("ctrl+o")
        await show.rows(called(2, "bash", '{"command": "two"}'), first=False)
        assert "command: two" in show.text

    puppet(scene)


def test_a_fork_shows_its_inherited_history_as_one_line_and_its_prompt_first():
    async def scene(show: Show) -> None:
        await show.board(face("child"))
        await show.press("ctrl+down")
        prompt = said(1, "Do this.", Kind.MAIL, "child", name="root", sender="x", introduces={"name": "child"})
        old = [said(1, "hello", Kind.USER), said(2, "what the root said")]
        await show.post(RowsArrived(id_of("child"), [prompt], old, False, True, 42))
        first, second = [line for line in show.lines if line.strip()][:2]
        assert first.strip() == "▸ 42 inherited messages of root"
        assert "root  (the prompt of this fork)" in second
        await show.press("tab", "up", "enter")
        assert "what the root said" in show.text

    puppet(scene)


def test_streamed_text_becomes_the_finished_message_without_being_drawn_anew():
    text = "# Title\n\nSome *words*.\n\n```python\nx = 1\n```\n\n1. one\n2. two\n\nEnd."

    async def scene(show: Show) -> None:
        await show.rows(said(1, "hello", Kind.USER))
        for at in range(0, len(text), 9):
            await show.stream(text[at : at + 9])
        await show.until(lambda: "wall" in show.text)  # what is known of the surroundings comes later
        before, live = show.text, show.app.main.views.query_one(ModelMessageView)
        await show.rows(said(2, text), first=False)
        assert show.text == before
        assert show.app.main.views.query_one(ModelMessageView) is live
        await show.rows(said(1, "hello", Kind.USER), said(2, text))
        assert show.text == before

    puppet(scene)


def test_only_the_error_that_ended_the_last_turn_says_how_to_run_it_again():
    failed = face("root", None, ended_with=Kind.ERROR)

    async def scene(show: Show) -> None:
        for seq in (1, 2):
            await show.rows(Row(ROOT, seq, Kind.ERROR, {"error": f"failure {seq}"}), first=seq == 1)
            await show.board(failed)
            await show.sees(f"failure {seq}", "/retry runs the turn again.")
            assert show.text.index("/retry runs") > show.text.index(f"failure {seq}")
            assert show.text.count("/retry runs") == 1
        for passed in (
            face("root", None, "running", ended_with=Kind.ERROR),
            face("root", None, ended_with=Kind.ASSISTANT),
            face("root", None, "dead", ended_with=Kind.ERROR),
            face("root", None, ended_with=Kind.ERROR, external=True),
        ):
            await show.board(failed)
            await show.sees("/retry runs")
            await show.board(passed)
            assert "/retry runs" not in show.text
        await show.board(failed)
        await show.rows(Row(ROOT, 3, Kind.ERROR, {"error": "no answer", "hint": "See /retry."}), first=False)
        await show.sees("See /retry.")
        assert "/retry runs" not in show.text
        await show.rows(Row(ROOT, 4, Kind.ERROR, {"error": "no answer", "hint": "Check the key."}), first=False)
        await show.sees("Check the key. /retry runs the turn again.")
        cleared = {"event": "cleared", "text": "cleared", "keep": 0}
        await show.rows(Row(ROOT, 5, Kind.EVENT, cleared), first=False)
        assert "/retry runs" not in show.text

    puppet(scene)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_row_that_comes_in_the_middle_of_a_batch_doubles_and_loses_nothing(parts):
    text = "It still runs, and I do not need it. I kill it now."

    async def scene(show: Show) -> None:
        await show.rows(said(1, "hello", Kind.USER))
        size = len(text) // parts + 1
        streamed = [TextStreamed(ROOT, text[at : at + size]) for at in range(0, len(text) - parts, size)]
        await show.post(*streamed, RowsArrived(ROOT, [called(2, "kill", text=text)], None, False, False))
        assert show.text.count("It still runs") == show.text.count("kill it now.") == 1

    puppet(scene)


def test_text_of_a_dead_agent_that_was_not_finished_goes():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "hello", Kind.USER))
        await show.stream("half a sentence")
        await show.rows(said(2, "killed by root", Kind.EVENT, event="killed"), first=False)
        assert "half a sentence" not in show.text
        assert "· killed by root" in show.text

    puppet(scene)


def test_text_that_is_void_goes_in_view_and_out_of_it():
    async def scene(show: Show) -> None:
        await show.board(face("child"))
        await show.rows(said(1, "hello", Kind.USER))
        await show.stream("half a sent")
        await show.stream("", anew=True)
        assert "half a sent" not in show.text
        await show.stream("The first try")
        await show.stream("The second", anew=True)
        assert "The first try" not in show.text
        await show.press("ctrl+down")
        await show.stream(" try")
        await show.stream("The third", anew=True)
        await show.stream(" try")
        await show.press("ctrl+up")
        await show.settled()
        assert "The third try" in show.text
        assert "The second" not in show.text
        await show.rows(said(2, "The third try"), first=False)
        assert show.text.count("The third try") == 1

    puppet(scene)


def test_text_that_streams_while_a_person_reads_far_above_is_there_when_they_come_down():
    async def scene(show: Show) -> None:
        await show.rows(*messages(1, 80))
        scrollback = show.app.main.views.current
        assert scrollback is not None
        while scrollback._window.at_end:
            await show.press("pageup")
            await show.settled()
        await show.stream("It streams")
        await show.stream(" far below.")
        assert "It streams" not in show.text
        while not scrollback.at_bottom:
            await show.press("pagedown")
            await show.settled()
        assert "It streams far below." in show.text
        await show.press("pageup")
        await show.settled()
        await show.stream(" And on.")
        await show.press("ctrl+end")
        await show.settled()
        assert "It streams far below. And on." in show.text
        await show.rows(said(81, "It streams far below. And on. Done."), first=False)
        assert show.text.count("It streams") == 1
        assert "Done." in show.text

    puppet(scene)


def test_a_copy_of_wrapped_text_is_one_line_again():
    async def scene(show: Show) -> None:
        words = "All these words belong to one line, and to one item of a list, however narrow the screen is."
        await show.rows(said(1, f"- {words}\n\n```text\ncode\n  more\n```"))
        prose = show.app.main.views.query_one(Prose)
        assert prose.size.height > 4, "it is not wrapped"
        prose.text_select_all()
        assert show.app.screen.get_selected_text() == f"• {words}\n\ncode\n  more"

    puppet(scene, size=(60, 24))


def test_an_answer_that_was_interrupted_says_so():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "half of", interrupted=True))
        assert "· interrupted here" in show.text

    puppet(scene)


def test_reasoning_is_folded():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "the answer", reasoning="because of this"))
        assert "▸ reasoning, 15 characters" in show.text
        assert "because of this" not in show.text
        await show.press("tab", "enter")
        assert "because of this" in show.text

    puppet(scene)


def test_text_of_an_agent_out_of_view_is_there_when_it_comes_into_view():
    async def scene(show: Show) -> None:
        await show.board(face("child"))
        await show.rows()
        await show.press("ctrl+down")
        await show.rows(agent="child")
        await show.press("ctrl+up")
        await show.stream("from the child", agent="child")
        assert "from the child" not in show.text
        await show.press("ctrl+down")
        await show.settled()
        assert "from the child" in show.text

    puppet(scene)


def test_scrolling_to_the_beginning_and_back_shows_every_message_once_and_mounts_few():
    async def scene(show: Show) -> None:
        await show.rows(*messages(41, 90), more=True)
        scrollback = show.app.main.views.current
        assert scrollback is not None
        seen = numbers(show)
        while seen[0] > 1:
            await show.press("pageup")
            await show.settled()
            if show.app.hand.older_asked:  # type: ignore[attr-defined]
                show.app.hand.older_asked.clear()  # type: ignore[attr-defined]
                await show.post(OlderRows(ROOT, messages(1, 40), False))
            now = numbers(show)
            assert now[-1] >= seen[0] - 1, "a page was left out"
            seen = now
            assert len(scrollback._views) < 70
        while seen[-1] < 90:
            await show.press("pagedown")
            await show.settled()
            now = numbers(show)
            assert now[0] <= seen[-1] + 1, "a page was left out"
            seen = now
        assert scrollback.at_bottom

    puppet(scene)


def test_what_is_in_sight_stays_when_something_is_added_below():
    async def scene(show: Show) -> None:
        await show.rows(*messages(1, 50))
        await show.press("pageup", "pageup")
        await show.settled()
        before = numbers(show)
        await show.rows(*messages(51, 60), first=False)
        await show.stream("more")
        assert numbers(show) == before
        await show.press("ctrl+end")
        await show.settled()
        assert numbers(show)[-1] == 60

    puppet(scene)


def test_at_the_bottom_the_newest_is_always_in_sight():
    async def scene(show: Show) -> None:
        await show.rows(*messages(1, 50))
        for n in range(51, 58):
            await show.rows(*messages(n, n), first=False)
            assert numbers(show)[-1] == n

    puppet(scene)


def test_rows_that_come_before_the_end_is_laid_out_are_followed():
    async def scene(show: Show) -> None:
        await show.rows(*messages(1, 90))
        scrollback = show.app.main.views.current
        assert scrollback is not None
        await show.rows(*messages(91, 150), first=False)
        for n in range(151, 161):
            # As between a change of the height and its layout: the anchor has not scrolled yet.
            scrollback.set_reactive(type(scrollback).scroll_y, scrollback.max_scroll_y - 1)
            await scrollback.append(messages(n, n))
        await show.settled()
        assert numbers(show)[-1] == 160

    puppet(scene)


def test_the_key_for_the_top_goes_to_the_first_message_of_all_at_once():
    async def scene(show: Show) -> None:
        await show.rows(*messages(101, 200), more=True)
        scrollback = show.app.main.views.current
        assert scrollback is not None
        hand = show.app.hand  # type: ignore[attr-defined]
        await show.press("ctrl+home")
        for first in (41, 1):
            await show.until(lambda: bool(hand.older_asked))
            hand.older_asked.clear()
            await show.post(OlderRows(ROOT, messages(first, first + 59 if first > 1 else 40), first > 1))
        await show.until(lambda: numbers(show)[0] == 1)
        await show.settled()
        assert (numbers(show)[0], scrollback.scroll_y) == (1, 0)
        await show.press("pagedown")
        await show.settled()
        assert numbers(show)[0] > 1, "it stays where the person goes"
        await show.press("ctrl+end")
        await show.until(lambda: numbers(show)[-1] == 200)

    puppet(scene)


def test_who_scrolls_on_the_way_to_the_top_stays_there():
    async def scene(show: Show) -> None:
        await show.rows(*messages(101, 200), more=True)
        await show.press("ctrl+home")
        await show.until(lambda: bool(show.app.hand.older_asked))  # type: ignore[attr-defined]
        await show.settled()
        await show.press("pagedown")
        await show.settled()
        before = numbers(show)[0]
        assert before > 101
        await show.post(OlderRows(ROOT, messages(41, 100), True))
        await show.settled()
        assert numbers(show)[0] >= 101

    puppet(scene)


def test_what_came_while_a_person_read_above_is_there_when_the_terminal_grows():
    async def scene(show: Show) -> None:
        await show.rows(*messages(1, 90))
        await show.rows(*messages(91, 150), first=False)
        await show.press("pageup")
        await show.settled()
        for n in range(151, 171):
            await show.rows(*messages(n, n), first=False)
        scrollback = show.app.main.views.current
        assert scrollback is not None
        assert not scrollback._window.at_end, "the newest are not mounted"
        await show.pilot.resize_terminal(80, 70)
        for _ in range(3):
            await show.press("pagedown")
            await show.settled()
        assert numbers(show)[-1] == 170

    puppet(scene)


def test_scroll_position_and_folds_are_kept_even_when_the_widgets_are_not():
    async def scene(show: Show) -> None:
        rows = [row for n in range(1, 60, 2) for row in (said(n, f"message {n}"), called(n + 1, "glob"))]
        others = [face(f"a{n}") for n in range(LIVE + 1)]
        await show.board(*others)
        await show.rows(*rows)
        await show.press("tab", "enter")
        await show.press("pageup", "pageup")
        await show.settled()
        before = show.lines[:15]
        assert any(view.unfolded for view in show.app.main.views.query(ToolCallView))
        for other in others:
            show.app.main.navigation.goto(other.id)
            await show.pilot.pause()
        assert ROOT in show.app.hand.dropped  # type: ignore[attr-defined]
        show.app.main.navigation.goto(ROOT)
        await show.rows(*rows)
        assert show.lines[:15] == before
        await show.press("ctrl+end")
        await show.settled()
        assert any(view.unfolded for view in show.app.main.views.query(ToolCallView))

    puppet(scene)


def test_a_paste_of_ten_thousand_lines_is_one_folded_entry():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "\n".join(f"line {n}" for n in range(10_000)), Kind.USER))
        assert "▸ 9,976 more lines" in show.text

    puppet(scene)


def test_links_other_than_to_pages_are_not_opened(monkeypatch):
    async def scene(show: Show) -> None:
        opened: list[str] = []
        monkeypatch.setattr(show.app, "open_url", opened.append)
        await show.rows(said(1, "[a](file:///etc/passwd) and [b](https://example.org)"))
        prose = show.app.main.views.query_one(Prose)
        for href in ("file:///etc/passwd", "https://example.org"):
            await prose.run_action(f"open({href!r})")
        assert opened == ["https://example.org"]

    puppet(scene)
