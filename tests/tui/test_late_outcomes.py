"""What comes late, the outcome of a command or a board, neither swallows a key nor undoes one: the last wish holds."""

from __future__ import annotations

import uuid

import pytest

from agentmesh.domain.ids import SessionId
from agentmesh.store.reader import QueryResult
from agentmesh.tui.board.table import TablePage
from agentmesh.tui.commands.calls import SAY, Call, Done, Failed
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.input.help import Help
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.widgets.chooser import Chooser
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh
from tests.tui.faces import board, face, id_of
from tests.tui.piloting import ROOT, Show, asked, enter, family, puppet, said

_WAITS = "select exists (select from pg_stat_activity where pg_blocking_pids(pid) && array[%s::int])"
OTHER = board(face("root", None), id=SessionId(uuid.UUID(int=2)), root_id=id_of("fresh")).session
FORKED = Done("Forked fork.", goto=id_of("fork"))
TABLE = Done(table=QueryResult(["name"], [25], [("a row",)]))


def test_a_key_pressed_while_a_fork_is_made_holds(mesh: Mesh, stage: Stage, on_screen):
    mesh.fork(mesh.root, "alpha")
    blocked = stage.holder.info.backend_pid

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        stage.holder.execute("lock table agentmesh.agents in share row exclusive mode")
        await enter(show, "/fork")
        await show.until(lambda: mesh.one(_WAITS, blocked))
        await show.press("ctrl+down")
        assert show.in_view == "alpha"
        stage.holder.rollback()
        await show.sees("Forked fork", "1/2  fork ›")
        assert show.in_view == "alpha"

    on_screen(scene)


@pytest.mark.parametrize("command", ["/title x", "/clear", "/model x", "/mode plan", "hello"])
def test_a_key_pressed_while_a_command_is_carried_out_holds(command):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, command)
        await show.press("ctrl+down", "f7")
        await show.post(ActionDone(asked(show)[0], ROOT, Done()))
        await show.board(*family())
        assert show.in_view == "beta"

    puppet(scene)


@pytest.mark.parametrize("command", ["/agents alpha", "/kill alpha", "/fork"])
@pytest.mark.parametrize("keys", [["ctrl+down"], ["ctrl+p", "down", "down", "down", "enter"]], ids=["a key", "picker"])
def test_who_went_elsewhere_meanwhile_stays_there(command, keys):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, command)
        await show.press(*keys)
        assert show.in_view == "gamma"
        await show.post(ActionDone(asked(show)[0], ROOT, Done("Done so.", goto=id_of("alpha"))))
        assert show.in_view == "gamma"
        assert "Done so." in show.text

    puppet(scene)


def test_who_went_away_and_came_back_stays_too():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/fork")
        await show.press("ctrl+down", "ctrl+up")
        await enter(show, "for the root")
        await show.post(ActionDone(asked(show)[0], ROOT, FORKED))
        await show.board(*family(), face("fork"))
        assert show.in_view == "root"

    app = puppet(scene)
    assert app.hand.asked[1:] == [(Call(SAY, ("for the root",), "for the root"), ROOT)]


def test_commands_typed_ahead_lead_to_the_last_of_them():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/agents alpha")
        await enter(show, "/agents beta")
        await show.post(ActionDone(asked(show)[0], ROOT, Done(goto=id_of("alpha"))))
        await show.post(ActionDone(asked(show)[1], id_of("alpha"), Done(goto=id_of("beta"))))
        assert show.in_view == "beta"

    puppet(scene)


@pytest.mark.parametrize("command", ["/agents alpha", "/kill"])
def test_what_is_typed_after_a_command_that_leads_elsewhere_is_not_torn_apart(command):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down", "f7")
        await enter(show, command)
        await enter(show, "first")
        await show.type("sec")
        await show.post(ActionDone(asked(show)[0], id_of("beta"), Done(goto=id_of("alpha"))))
        await show.type("ond")
        assert (show.in_view, show.typed) == ("alpha", "second")

    app = puppet(scene)
    assert app.hand.asked[1:] == [(Call(SAY, ("first",), "first"), id_of("alpha"))]


@pytest.mark.parametrize("command", ["/agents nobody", "/kill"])
def test_what_is_typed_after_a_command_that_leads_nowhere_comes_back(command):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, command)
        await enter(show, "first")
        await show.type("second")
        await show.post(ActionDone(asked(show)[0], ROOT, Failed("no", "")))
        assert (show.in_view, show.typed.splitlines()) == ("root", ["first", "second"])

    assert len(puppet(scene).calls) == 1


@pytest.mark.parametrize("command", ["/agents", "/kill alpha"])
def test_a_command_that_leads_nowhere_else_holds_nothing_back(command):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, command)
        await show.press("escape")
        await enter(show, "hello")
        assert asked(show)[-1] == Call(SAY, ("hello",), "hello")

    puppet(scene)


def test_what_was_entered_for_a_child_reaches_it_from_elsewhere_and_what_is_entered_there_does_not():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/fork")
        await enter(show, "for the fork")
        await show.press("ctrl+down", "f7")
        await enter(show, "for beta")
        await show.type("and more")
        await show.post(ActionDone(asked(show)[0], ROOT, FORKED))
        await show.board(*family(), face("fork"))
        assert (show.in_view, show.typed) == ("beta", "and more")

    app = puppet(scene)
    assert app.hand.asked[1:] == [
        (Call(SAY, ("for beta",), "for beta"), id_of("beta")),
        (Call(SAY, ("for the fork",), "for the fork"), id_of("fork")),
    ]


def test_what_cannot_be_sent_on_to_the_child_stands_in_its_input():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/fork")
        for text in ("first", "/nonsense", "then"):
            await enter(show, text)
        await show.press("ctrl+down")
        await show.post(ActionDone(asked(show)[0], ROOT, FORKED))
        await show.board(*family(), face("fork"))
        assert (show.in_view, show.typed) == ("gamma", "")
        await show.press("f8", "f8")
        assert (show.in_view, show.typed.splitlines()) == ("alpha", [])
        await show.press("f7", "f7")
        await show.press("f8")
        assert (show.in_view, show.typed.splitlines()) == ("fork", ["/nonsense", "then"])

    app = puppet(scene)
    assert app.hand.asked[1:] == [(Call(SAY, ("first",), "first"), id_of("fork"))]


def test_what_was_entered_for_a_child_that_was_refused_comes_back_where_it_was_entered():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/fork")
        await enter(show, "for the fork")
        await show.press("ctrl+down", "f7")
        await show.type("for beta")
        await show.post(ActionDone(asked(show)[0], ROOT, Failed("too many children", "Kill one.", "/fork")))
        assert (show.in_view, show.typed) == ("beta", "for beta")
        await show.press("ctrl+up")
        assert (show.in_view, show.typed.splitlines()) == ("root", ["/fork", "for the fork"])

    assert len(puppet(scene).calls) == 1


def test_a_key_that_leads_nowhere_keeps_nobody_from_the_child_that_the_board_does_not_have_yet():
    async def scene(show: Show) -> None:
        await enter(show, "/fork")
        await show.post(ActionDone(asked(show)[0], ROOT, FORKED))
        await show.press("ctrl+down")
        assert "It has no children" in show.text
        await enter(show, "for the fork")
        await show.board(face("fork"))
        assert show.in_view == "fork"

    app = puppet(scene)
    assert app.hand.asked[1:] == [(Call(SAY, ("for the fork",), "for the fork"), id_of("fork"))]


def test_who_goes_elsewhere_before_the_board_has_the_child_stays_there():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/fork")
        await enter(show, "for the fork")
        await show.post(ActionDone(asked(show)[0], ROOT, FORKED))
        await show.press("ctrl+down", "f7")
        await enter(show, "for beta")
        await show.board(*family(), face("fork"))
        assert show.in_view == "beta"

    app = puppet(scene)
    assert [(call.args, agent) for call, agent in app.hand.asked[1:]] == [
        (("for the fork",), id_of("fork")),
        (("for beta",), id_of("beta")),
    ]


@pytest.mark.parametrize("keys", [["ctrl+down", "f7"], ["f1"]], ids=["another agent", "a page"])
def test_a_new_session_takes_nobody_away_from_what_they_went_to_meanwhile(keys):
    async def scene(show: Show) -> None:
        await show.board(*family())
        await enter(show, "/new")
        await enter(show, "for the new one")
        await show.press(*keys)
        before = show.app.main
        await show.post(ActionDone(asked(show)[0], ROOT, Done(session=OTHER)))
        assert show.app.main is before
        assert isinstance(show.app.screen, Help if keys == ["f1"] else MainScreen)
        await show.press("escape") if keys == ["f1"] else await show.press("ctrl+up")
        assert "/sessions leads to the new session" in show.text
        assert (show.in_view, show.typed) == ("root", "for the new one")

    assert len(puppet(scene).calls) == 1


def test_who_scrolls_while_a_message_is_on_its_way_stays_where_they_are():
    async def scene(show: Show) -> None:
        await show.rows(*(said(n, f"line {n}") for n in range(1, 60)))
        scrollback = show.app.main.views.current
        assert scrollback is not None
        await show.press("ctrl+home")
        await enter(show, "hello")
        await show.post(ActionDone(asked(show)[0], ROOT, Done()))
        await show.until(lambda: scrollback.at_bottom)
        await enter(show, "again")
        await show.press("ctrl+home")
        await show.post(ActionDone(asked(show)[1], ROOT, Done()))
        await show.settled()
        assert not scrollback.at_bottom

    puppet(scene)


def test_a_page_that_comes_late_takes_no_keys_and_opens_when_the_person_has_paused():
    async def scene(show: Show) -> None:
        await enter(show, "/sql select 1")
        await show.type("hel")
        await show.post(ActionDone(asked(show)[0], ROOT, TABLE))
        assert "/sql opens when you pause typing" in show.text
        await enter(show, "lo")
        assert asked(show)[1] == Call(SAY, ("hello",), "hello")
        await show.until(lambda: isinstance(show.app.screen, TablePage))
        await show.sees("a row")

    puppet(scene)


def test_a_page_that_comes_while_another_is_open_waits_for_its_end():
    async def scene(show: Show) -> None:
        await enter(show, "/sql select 1")
        await show.press("f1")
        await show.post(ActionDone(asked(show)[0], ROOT, TABLE))
        assert isinstance(show.app.screen, Help)
        await show.press("escape")
        await show.until(lambda: isinstance(show.app.screen, TablePage))

    puppet(scene)


def test_a_list_of_sessions_that_comes_late_takes_no_keys(mesh: Mesh, stage: Stage, on_screen):
    async def scene(show: Show) -> None:
        stage.holder.execute("lock table agentmesh.sessions in access exclusive mode")
        await enter(show, "/sessions")
        await show.type("hel")
        stage.holder.rollback()
        await show.sees("/sessions opens when you pause typing")
        await enter(show, "lo")
        await show.until(lambda: isinstance(show.app.screen, Chooser))

    on_screen(scene)
    assert mesh.unread(mesh.root) == ["hello"]


def test_who_was_reaped_while_the_list_was_open_is_told_of():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+p", "down")
        await show.board(face("beta"))
        await show.press("enter")
        assert "alpha has been reaped" in show.text
        await show.board(face("alpha"), face("beta"))
        assert show.in_view == "root"

    puppet(scene)
