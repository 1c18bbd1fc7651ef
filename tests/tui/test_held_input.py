"""What was entered is in sight at every moment, and goes to whom it was meant for."""

from __future__ import annotations

import time
import uuid

import pytest
from textual import events
from textual.keys import _character_to_key

from agentmesh.domain.ids import SessionId
from agentmesh.tui.commands.calls import CAPTURED, END_SHELL, SAY, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.input.help import Help
from agentmesh.tui.session.messages import BoardChanged, Noticed
from agentmesh.tui.session.state import Board
from agentmesh.tui.widgets.confirm import Confirm
from agentmesh.tui.widgets.page import Page
from tests.tui.faces import board, face, id_of
from tests.tui.piloting import ROOT, Show, asked, enter, family, puppet, said


def test_what_is_sent_stays_in_sight_until_the_board_shows_it():
    async def scene(show: Show) -> None:
        await enter(show, "hello")
        await show.sees("⏸ not read yet: hello")
        await show.sees("↥ not sent yet: hello")
        await show.board()
        assert "not sent yet: hello" in show.text
        await show.post(ActionDone(asked(show)[0], ROOT, Done()))
        assert "hello" in show.text
        await show.board(read_at=time.monotonic())
        assert "hello" not in show.text

    puppet(scene)


def test_a_command_that_takes_long_is_not_called_unsent():
    async def scene(show: Show) -> None:
        await enter(show, "/export html")
        await show.sees("↥ not done yet: /export html")

    puppet(scene)


def test_leaving_keeps_the_drafts_of_all_agents():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.type("for the root")
        await show.press("ctrl+down")
        await show.until(lambda: not show.typed)
        await show.type("for the child")
        await show.press("ctrl+up")
        await show.until(lambda: show.typed == "for the root")
        show.app.exit()

    history = puppet(scene).main.composer._history
    assert history.newest_first() == ["for the root", "for the child"]


def test_leaving_says_that_something_is_not_sent():
    async def scene(show: Show) -> None:
        await enter(show, "hello")
        await show.press("ctrl+c")
        assert "1 message not sent yet: ↑ brings back what you typed" in show.text

    puppet(scene)


def test_leaving_keeps_what_waits_for_an_agent_to_come_into_view():
    async def scene(show: Show) -> None:
        await enter(show, "/agents alpha")
        await enter(show, "for alpha")
        await show.sees("↥ not sent yet: for alpha")
        await show.press("ctrl+c")
        assert "1 message not sent yet: ↑ brings back what you typed" in show.text
        await show.press("ctrl+c")

    app = puppet(scene)
    assert app.main.composer._history.older("") == "for alpha"


def test_what_is_refused_comes_back_to_the_agent_it_was_for():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down", "f7")
        await enter(show, "for beta")
        await show.press("f8", "f8")
        assert show.in_view == "alpha"
        await show.post(ActionDone(asked(show)[0], id_of("beta"), Failed("it is full", "Wait.", "for beta")))
        assert show.typed == ""
        await show.press("f8")
        assert (show.in_view, show.typed) == ("beta", "for beta")

    puppet(scene)


def test_what_is_refused_by_a_dead_agent_comes_back_where_one_can_type():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.post(ActionDone(Call(SAY, ("x",), "x"), id_of("gamma"), Failed("gamma is dead", "", "x")))
        assert (show.in_view, show.typed) == ("root", "x")

    puppet(scene)


def test_an_input_is_for_the_agent_in_view_when_it_was_entered():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down", "f7")
        await show.type("for beta")
        show.app.main.composer.prompt.action_submit()
        show.app.main.action_rotate("next")
        await show.pilot.pause()

    app = puppet(scene)
    assert app.hand.asked == [(Call(SAY, ("for beta",), "for beta"), id_of("beta"))]


def test_what_is_typed_after_a_fork_is_for_the_child():
    async def scene(show: Show) -> None:
        await enter(show, "/fork")
        await enter(show, "do this")
        await show.type("and th")
        await show.sees("not sent yet: do this")
        assert [call.name for call in asked(show)] == ["fork"]
        await show.post(ActionDone(asked(show)[0], ROOT, Done("Forked fork.", goto=id_of("fork"))))
        assert "not sent yet: do this" in show.text
        await show.type("at")
        await show.board(face("alpha"))  # read before the child was made, and shown after
        await show.board(face("fork"))
        assert (show.in_view, show.typed) == ("fork", "and that")
        await show.press("ctrl+c", "ctrl+up")
        assert show.typed == ""

    app = puppet(scene)
    assert app.hand.asked[1:] == [(Call(SAY, ("do this",), "do this"), id_of("fork"))]


def test_what_was_typed_after_a_refused_fork_is_sent_to_nobody():
    async def scene(show: Show) -> None:
        await enter(show, "/fork")
        await enter(show, "do this")
        await show.type("and that")
        await show.post(ActionDone(asked(show)[0], ROOT, Failed("too many children", "Kill one.", "/fork")))
        assert "too many children. Kill one." in show.text
        assert show.typed.splitlines() == ["do this", "and that"]

    assert len(puppet(scene).calls) == 1


def test_escape_ends_the_shell_command_of_the_view_and_no_agent():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running", activity="thinking"))
        await enter(show, "!sleep 100")
        await show.sees("! sleep 100 · 0 s · Esc ends it")
        await show.press("escape")
        assert asked(show)[-1] == Call(END_SHELL)
        await show.post(ActionDone(asked(show)[0], ROOT, Done()))
        await show.sees("thinking")
        await show.press("escape")
        assert asked(show)[-1] == Call("interrupt")

    puppet(scene)


def test_a_refused_word_is_captured_at_the_next_enter_also_when_what_follows_it_was_changed():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, capturing=True))
        await enter(show, "/word one")
        assert "Enter again captures it" in show.text
        await show.press(*["backspace"] * 3)
        await enter(show, "two\nand more")
        await enter(show, "/word three")
        assert "Enter again captures it" in show.text

    assert puppet(scene).calls == [Call(CAPTURED, ("/word two\nand more",), "/word two\nand more")]


def test_notices_cover_nothing_and_replace_no_answer():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "\n\n".join(f"line {n} " + "x" * 60 for n in range(30)) + " the end"))
        await enter(show, "/nonsense")
        for name in ("alpha", "beta", "gamma"):
            await show.post(Noticed(id_of(name), f"{name} [/x] finished", "information"))
        await show.sees(
            "There is no command /nonsense", "alpha [/x] finished · beta [/x] finished · gamma [/x] finished"
        )
        assert "x the end" in show.text
        await show.pilot.click("#key-line")
        await show.pilot.pause()
        assert "F1 help" in show.text
        assert "finished" not in show.text

    puppet(scene)


def test_what_needs_more_than_the_last_line_is_a_page():
    async def scene(show: Show) -> None:
        text = "\n".join(f"tool-{n}: does [/x]" for n in range(50))
        await show.post(ActionDone(Call("tools"), ROOT, Done(text)))
        assert isinstance(show.app.screen, Page)
        assert "tool-3: does [/x]" in show.text
        await show.press("end")
        await show.sees("tool-49")
        await show.press("escape")
        assert "tool-3:" not in show.text

    puppet(scene)


async def page(show: Show) -> None:
    """Open a page that is only read."""
    await show.post(ActionDone(Call("tools"), ROOT, Done("\n".join(f"tool-{n}" for n in range(50)))))
    assert isinstance(show.app.screen, Page)


def test_a_word_that_is_typed_into_a_page_goes_to_the_input_and_closes_it():
    async def scene(show: Show) -> None:
        await page(show)
        await show.press("j", "j")
        assert isinstance(show.app.screen, Page)
        await show.type("go on")
        await show.until(lambda: not isinstance(show.app.screen, Page))
        assert show.app.main.composer.prompt.text == "jjgo on"

    puppet(scene)


@pytest.mark.parametrize("line", ["go on", "quick"], ids=["a word", "a word that begins with the key that leaves"])
def test_a_line_that_is_typed_fast_into_a_page_is_sent_whole(line: str):
    async def scene(show: Show) -> None:
        await page(show)
        for key in (*map(_character_to_key, line), "enter"):
            show.app.post_message(events.Key(key, key if len(key) == 1 else " " if key == "space" else None))
        await show.until(lambda: asked(show))
        assert show.app.screen is show.app.main
        assert show.typed == ""

    assert [call.args for call in puppet(scene).calls] == [(line,)]


def test_a_letter_that_stays_in_a_page_is_no_part_of_what_is_typed_later():
    async def scene(show: Show) -> None:
        await page(show)
        await show.press("j", "j", "enter")
        assert isinstance(show.app.screen, Page)
        await show.press("j", "escape", "x")
        assert show.typed == "x"

    assert puppet(scene).calls == []


@pytest.mark.parametrize("text", ["one line", "two\nlines", "\n".join(f"line {n}" for n in range(200))])
def test_a_paste_into_a_page_is_one_in_the_input_and_closes_it(text: str):
    async def scene(show: Show) -> None:
        await page(show)
        show.app.post_message(events.Paste(text))
        await show.until(lambda: show.typed)
        assert show.app.main.composer.prompt.whole == text
        assert show.app.screen is show.app.main
        await show.press("enter")

    assert [call.args for call in puppet(scene).calls] == [(text,)]


def test_a_command_that_is_typed_into_the_help_goes_to_the_input_unless_a_dialog_is_below():
    async def scene(show: Show) -> None:
        await show.press("f1")
        await show.type("/mo")
        await show.until(lambda: show.typed == "/mo")
        assert show.app.screen is show.app.main
        show.app.push_screen(Confirm("Sure?", "", grace=0))
        await show.press("f1")
        await show.type("no")
        assert isinstance(show.app.screen, Help)
        assert show.typed == "/mo"

    puppet(scene)


def test_a_word_that_is_typed_into_a_page_is_keys_for_vim():
    async def scene(show: Show) -> None:
        show.app.main.composer.prompt.use_vim()
        await show.press("escape")
        await page(show)
        await show.type("isee ")
        await show.until(lambda: show.typed == "see ")

    puppet(scene)


def test_what_is_typed_after_new_is_for_the_new_session():
    other = board(face("root", None), id=SessionId(uuid.UUID(int=2)), root_id=id_of("fresh"))

    async def scene(show: Show) -> None:
        await enter(show, "/new")
        await enter(show, "do this")
        await show.type("and that")
        await show.post(ActionDone(asked(show)[0], ROOT, Done(session=other.session)))
        await show.sees("not sent yet: do this")
        assert show.typed == "and that"
        await show.post(BoardChanged(Board.of(other.session, [face("fresh", None)], 0.0)))
        assert (show.in_view, show.typed) == ("fresh", "and that")

    app = puppet(scene)
    assert app.hand.asked[1:] == [(Call(SAY, ("do this",), "do this"), id_of("fresh"))]
