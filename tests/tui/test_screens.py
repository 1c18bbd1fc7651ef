"""Dialogs, and the keys of the main screen."""

from __future__ import annotations

import pytest
from textual import events

from agentmesh.domain.ids import MailId
from agentmesh.store.reader import QueryResult
from agentmesh.tui.board.table import TablePage
from agentmesh.tui.commands.calls import INTERRUPT_TREE, TAKE_BACK, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.input.announcements import LEAST
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.session.messages import LinkChanged, Noticed
from agentmesh.tui.session.state import Pending
from agentmesh.tui.widgets.confirm import Confirm
from agentmesh.tui.widgets.page import Page
from tests.tui.faces import face, id_of, waiting
from tests.tui.piloting import Puppet, Show, called, family, puppet, said


def test_help_lists_commands_and_true_keys():
    async def scene(show: Show) -> None:
        await show.press("f1")
        assert "/capture" in show.text
        for _ in range(6):
            if "Ctrl+X or Alt+X" not in show.text:
                await show.press("pagedown")
        assert "Ctrl+X or Alt+X" in show.text
        await show.press("escape")
        assert isinstance(show.app.screen, MainScreen)

    puppet(scene, size=(100, 40), keys={"rotate.child": "ctrl+x,alt+x"})


@pytest.mark.parametrize("key", ["f1", "f10"])
def test_help_opens_over_what_covers_the_screen(key):
    async def scene(show: Show) -> None:
        for opens in ("ctrl+p", "f12"):
            await show.press(opens)
            covers = show.app.screen
            await show.press("a", key)
            await show.sees("Commands" if opens == "ctrl+p" else "Keys on the board")
            await show.press("escape")
            assert show.app.screen is covers
            await show.press("escape", "escape")

    puppet(scene, keys={"app.help": key} if key != "f1" else None)


def test_a_confirmation_ignores_keys_of_its_first_moment():
    async def scene(show: Show) -> None:
        answers: list[bool | None] = []
        show.app.push_screen(Confirm("Really?", "all of it", grace=3600), answers.append)
        await show.pilot.pause()
        await show.press("enter", "y", "n", "escape")
        assert isinstance(show.app.screen, Confirm)
        assert answers == []

    puppet(scene)


def test_a_confirmation_is_answered_by_its_keys_only():
    async def scene(show: Show) -> None:
        answers: list[bool | None] = []
        for keys in (("x", "tab", "y"), ("enter",), ("n",), ("escape",), ("ctrl+c",)):
            show.app.push_screen(Confirm("Really?", "all of it", grace=0), answers.append)
            await show.pilot.pause()
            await show.press(*keys)
        assert answers == [True, True, False, False, False]
        assert show.typed == ""

    puppet(scene)


def test_escape_interrupts_and_a_second_one_offers_the_subtree(monkeypatch):
    monkeypatch.setattr(
        "agentmesh.tui.widgets.confirm.Confirm", lambda question, detail: Confirm(question, detail, grace=0)
    )

    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"), face("alpha", status="running"), face("beta"))
        await show.press("escape")
        assert "Esc again: also the 1 running below root" in show.lines[-1]
        await show.post(ActionDone(show.app.calls[-1], id_of("root"), Done("Interrupted root.")))  # type: ignore[attr-defined]
        assert "Interrupted root. · Esc again: also the 1 running below root" in show.lines[-1], "it can still be read"
        await show.press("escape")
        assert "Interrupt root and all 1 running below it?" in show.text
        assert "alpha" in show.text
        await show.press("y")

    app = puppet(scene)
    assert [call.name for call in app.calls] == ["interrupt", INTERRUPT_TREE]


def test_escape_at_an_idle_agent_interrupts_nobody_and_says_so():
    async def scene(show: Show) -> None:
        await show.press("escape")
        assert "there is nothing to interrupt" in show.lines[-1]

    assert puppet(scene).calls == []


def test_ctrl_c_clears_then_says_what_the_next_does_then_leaves():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"))
        await show.type("draft")
        await show.press("ctrl+c")
        assert show.typed == ""
        assert show.lines[-1] == " Cleared; ↑ brings it back. Ctrl+C again leaves; 1 running agent goes on"
        await show.press("up")
        assert show.typed == "draft"
        await show.press("ctrl+c")
        assert show.typed == ""
        assert not show.app._exit, "something stood in the input"
        await show.press("ctrl+c")
        await show.until(lambda: show.app._exit)

    puppet(scene)


def test_what_was_typed_between_the_two_ctrl_c_is_in_the_history():
    async def scene(show: Show) -> None:
        history = show.app.main.composer._history
        await show.type("draft")
        await show.press("ctrl+c")
        await show.type("better")
        await show.press("ctrl+c", "ctrl+c")
        await show.until(lambda: show.app._exit)
        assert history.older("") == "better"

    puppet(scene)


def test_ctrl_c_typing_ctrl_c_does_not_leave():
    async def scene(show: Show) -> None:
        await show.press("ctrl+c")
        await show.type("better")
        await show.press("ctrl+c")
        assert "Ctrl+C again leaves" in show.lines[-1]
        assert not show.app._exit

    puppet(scene)


def test_any_other_key_or_a_paste_lets_the_next_ctrl_c_or_esc_be_a_first_one():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"), face("alpha", status="running"))
        for others in (lambda: [events.Key("d", "d"), events.Key("backspace", None)], lambda: [events.Paste("d")]):
            await show.press("ctrl+c")
            assert "Ctrl+C again leaves" in show.text
            await show.post(*others())
            await show.press("ctrl+c")
            assert not show.app._exit
            await show.press("escape")
            assert "Esc again: also" in show.text
            await show.post(*others())
            await show.press("escape")
            assert isinstance(show.app.screen, MainScreen)

    puppet(scene)


def test_the_last_line_offers_a_second_press_for_as_long_as_it_counts(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.board.leave_key.MOMENT", 0.2)

    async def scene(show: Show) -> None:
        await show.press("ctrl+c")
        await show.until(lambda: "Ctrl+C again leaves" not in show.text, timeout=LEAST - 1)

    puppet(scene)


def test_the_outcome_of_an_interrupt_stays_longer_than_the_offer_of_a_second_press(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.board.interrupt_key.MOMENT", 1.0)

    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"), face("alpha", status="running"))
        await show.press("escape")
        offer = show.app.main.interrupt_key.offer()
        assert offer is None or offer.seconds < 1.0, "it counts from the press"
        await show.post(ActionDone(show.app.calls[-1], id_of("root"), Done("Interrupted root.")))  # type: ignore[attr-defined]
        await show.until(lambda: "Esc again" not in show.text)
        assert "Interrupted root." in show.lines[-1]

    puppet(scene)


@pytest.mark.parametrize("page", [lambda: Page("Title", "text"), None], ids=["page", "help"])
def test_q_leaves_a_page(page):
    async def scene(show: Show) -> None:
        if page is None:
            await show.press("f1")
        else:
            show.app.push_screen(page())
        await show.until(lambda: not isinstance(show.app.screen, MainScreen))
        await show.sees("Esc or q leaves" if page else "Commands")
        await show.press("q")
        await show.until(lambda: isinstance(show.app.screen, MainScreen))
        assert show.typed == ""

    puppet(scene)


def test_ctrl_c_copies_a_selection_first():
    async def scene(show: Show) -> None:
        await show.type("some words")
        await show.press("ctrl+shift+left", "ctrl+c")
        assert show.app.clipboard == "words"
        assert show.typed == "some words"
        assert "Copied 5 characters" in show.lines[-1]

    puppet(scene)


def test_the_last_answer_is_copied_with_a_key():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "**the** answer"), called(2, "glob"))
        await show.press("f6")
        assert show.app.clipboard == "**the** answer"

    puppet(scene)


def test_shift_tab_goes_through_the_modes_but_never_to_all():
    async def scene(show: Show) -> None:
        for mode in ("ask", "edits", "plan", "all"):
            await show.board(permission_mode=mode)
            assert f" {mode} " in show.text
            await show.press("shift+tab")

    app = puppet(scene)
    assert [call.args for call in app.calls] == [("edits",), ("plan",), ("ask",), ("ask",)]


def test_an_unread_message_is_shown_and_can_be_taken_back():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running", pending=(Pending(MailId(7), "never mind"),)))
        assert "not read yet: never mind  F4 takes it back" in show.text
        await show.board(
            face("root", None, "idle", activity="interrupted", pending=(Pending(MailId(7), "never mind"),))
        )
        assert "goes with your next message: never mind  F4 takes it back" in show.text
        await show.board(face("root", None, "dead", pending=(Pending(MailId(7), "never mind"),)))
        assert "was never read: never mind" in show.text
        assert "goes with" not in show.text
        await show.board(face("root", None, "idle", pending=(Pending(MailId(7), "never mind"),)))
        await show.press("f4")
        done = Done(draft="never mind")
        await show.post(ActionDone(show.app.calls[-1], id_of("root"), done))  # type: ignore[attr-defined]
        assert show.typed == "never mind"

    assert puppet(scene).calls == [Call(TAKE_BACK, ("7",))]


def test_the_side_tree_shows_all_agents_and_a_click_goes_to_one():
    async def scene(show: Show) -> None:
        await show.board(*family(), face("grandchild", "beta", "running", activity="tool: bash"))
        await show.press("ctrl+t")
        await show.sees("◐ grandchild tool: bash")
        tree = [line[70:] for line in show.lines[:5]]
        assert tree == [
            "○ root idle",
            "├ ○ alpha idle",
            "├ ○ beta idle",
            "│ └ ◐ grandchild tool: bash",
            "└ ✗ gamma dead",
        ]
        await show.pilot.click("#side-tree", offset=(5, 2))
        await show.pilot.pause()
        assert show.in_view == "beta"
        await show.press("ctrl+t")
        assert "grandchild tool" not in show.text

    puppet(scene, size=(100, 24))


def test_a_long_name_in_the_side_tree_keeps_its_end():
    async def scene(show: Show) -> None:
        await show.board(*(face(f"reviewer-of-the-long-part-{n}") for n in (1, 2)))
        await show.press("ctrl+t")
        await show.sees("├ ○ reviewer-of-the-l…part-1", "└ ○ reviewer-of-the-l…part-2")

    puppet(scene)


def test_the_side_tree_counts_the_silent_and_shows_them_at_the_second_press():
    async def scene(show: Show) -> None:
        await show.board(face("alpha"), face("quiet", silent=True), face("below", "quiet", silent=True))
        await show.press("ctrl+t")
        await show.sees("+2 silent")
        assert [line[70:] for line in show.lines[:3]] == ["○ root idle", "└ ○ alpha idle", "+2 silent"]
        await show.pilot.click("#side-tree", offset=(5, 2))
        await show.press("ctrl+down")
        assert show.in_view == "alpha", "keys do not lead to the silent"
        await show.press("ctrl+t")
        await show.sees("└ ○ below idle")
        assert "+2 silent" not in show.text

    puppet(scene, size=(100, 24))


def test_f9_goes_to_an_agent_that_needs_a_person():
    async def scene(show: Show) -> None:
        await show.board(face("alpha"), face("beta", activity="holding mail"))
        assert "1 needs you: beta" in show.text
        await show.press("f9")
        assert show.in_view == "beta"
        await show.press("f9")
        assert "No other agent needs you" in show.lines[-1]

    puppet(scene)


def test_trouble_is_in_the_status_line_until_it_is_over():
    async def scene(show: Show) -> None:
        await show.post(LinkChanged("the database is away: trying again"))
        assert "the database is away: trying again" in show.lines[-2]
        await show.post(LinkChanged(None))
        assert "away" not in show.text

    puppet(scene)


def test_notices_are_shown_as_they_are():
    async def scene(show: Show) -> None:
        await show.post(Noticed(id_of("alpha"), "alpha [/x] finished", "information"))
        await show.sees("alpha [/x] finished")

    puppet(scene)


def test_what_failed_is_said_and_comes_back_into_the_input():
    async def scene(show: Show) -> None:
        failed = Failed("the mailbox of root is full [/b]", "Wait.", "my text")
        await show.post(ActionDone(Call("say", ("my text",), "my text"), id_of("root"), failed))
        await show.sees("the mailbox of root is full [/b]. Wait.")
        assert show.typed == "my text"

    puppet(scene)


def test_the_view_moves_to_a_new_agent_as_soon_as_the_board_knows_it():
    async def scene(show: Show) -> None:
        await show.post(ActionDone(Call("fork"), id_of("root"), Done(goto=id_of("fork"))))
        assert show.in_view == "root"
        await show.board(face("alpha"))  # read before the child was made, and shown after
        assert show.in_view == "root"
        await show.board(face("alpha"), face("fork"))
        assert show.in_view == "fork"

    puppet(scene)


def test_the_table_of_a_query_scrolls_and_shows_everything_as_text():
    async def scene(show: Show) -> None:
        rows: list[tuple[str | None, ...]] = [(f"row {n}", "[/x]" if n == 1 else None) for n in range(100)]
        await show.post(
            ActionDone(
                Call("sql", ("select 1",)), id_of("root"), Done(table=QueryResult(["name", "other"], [25, 25], rows))
            )
        )
        assert isinstance(show.app.screen, TablePage)
        assert "row 1   [/x]" in show.text
        assert "∅" in show.text
        assert "100 rows" in show.text
        await show.press("ctrl+end")
        await show.sees("row 99")
        await show.press("q")
        assert isinstance(show.app.screen, MainScreen)

    puppet(scene)


def test_numbers_in_a_table_stand_below_each_other():
    async def scene(show: Show) -> None:
        rows: list[tuple[str | None, ...]] = [("a", "7", "$0.0300"), ("b", "1,234", "?"), ("c", None, "13k")]
        table = QueryResult(["name", "calls", "odd"], [25, 25, 25], rows)
        await show.post(ActionDone(Call("cost"), id_of("root"), Done(table=table)))
        await show.sees("a         7  $0.0300", "b     1,234  ?", "c         ∅  13k")

    puppet(scene)


def test_a_reaped_agent_gives_its_place_to_the_first_living_one():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down")
        assert show.in_view == "gamma"
        await show.board(*family()[:2])
        assert show.in_view == "root"

    puppet(scene)


def test_the_status_layer_is_there_only_during_the_wait_of_the_agent_in_view():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running", wait=waiting("alpha", "gamma")), *family())
        assert "○ idle" in show.text
        assert "✗ dead" in show.text
        await show.press("ctrl+down")
        assert "○ idle" not in show.text
        await show.press("ctrl+up")
        await show.board(face("root", None, "running"), *family())
        assert "○ idle" not in show.text

    puppet(scene)


def test_every_binding_has_an_id_and_a_description():
    from agentmesh.tui.conversation.entry import EntryView
    from agentmesh.tui.widgets.chooser import Chooser
    from agentmesh.tui.widgets.dialog import Dialog

    for owner in (MainScreen, Chooser, Confirm, Dialog, EntryView):
        for binding in owner.BINDINGS:
            assert binding.id, binding  # type: ignore[union-attr]
            assert binding.description, binding  # type: ignore[union-attr]
    of_app = [binding.id for bindings in Puppet(None)._bindings.key_to_bindings.values() for binding in bindings]
    assert of_app == ["app.suspend"], "it counts in dialogs too"


def test_what_was_sent_between_two_presses_keeps_the_screen():
    async def scene(show: Show) -> None:
        await show.type("half a thought")
        await show.press("ctrl+c")
        await show.type("hello")
        await show.press("enter", "ctrl+c")
        assert "Ctrl+C again leaves" in show.text
        assert show.app.is_running

    puppet(scene)


@pytest.mark.parametrize("opens", ["f1", "f12", "ctrl+p", ""])
def test_the_key_that_suspends_counts_on_every_screen(opens: str, monkeypatch: pytest.MonkeyPatch):
    suspended: list[str] = []
    monkeypatch.setattr(Puppet, "action_suspend_process", lambda _app: suspended.append(opens))

    async def scene(show: Show) -> None:
        await show.board(*family())
        if opens:
            await show.press(opens)
            await show.until(lambda: not isinstance(show.app.screen, MainScreen))
        await show.press("ctrl+z")
        await show.until(lambda: suspended == [opens])

    puppet(scene)
