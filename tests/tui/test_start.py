"""The screen before there is a session: it takes keys, and nothing that is typed is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.tui.board.board_screen import BoardScreen
from agentmesh.tui.link import Opened
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.session.messages import BoardChanged
from tests.tui.faces import board
from tests.tui.piloting import Puppet, Show

PATIENCE = 60


class Slow(Puppet):
    """Opens its session when the gate is opened."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.ended = threading.Event()
        opens = self._opening

        def opening() -> Opened:
            assert self.gate.wait(PATIENCE)
            if failure:
                raise failure
            self.ended.set()
            return opens()

        self._opening = opening


def before_it_is_open(scene: Callable[[Show], Awaitable[None]], app: Slow) -> None:
    """Play a scene that begins with the first frame."""

    async def play() -> None:
        try:
            async with app.run_test(size=(80, 24), notifications=True) as pilot:
                await scene(Show(app, pilot))
        finally:
            app.gate.set()

    asyncio.run(play())


async def opened(show: Show, app: Slow) -> None:
    app.gate.set()
    await show.until(lambda: app.session)
    await show.post(BoardChanged(board()))


def test_the_first_frame_says_that_the_session_is_being_opened_and_shows_keys_and_input():
    app = Slow()

    async def scene(show: Show) -> None:
        await show.sees("❯ Type a message", "opening the session", "F1 help")
        await opened(show, app)
        await show.sees("❯ Message root")
        assert "opening the session" not in show.text

    before_it_is_open(scene, app)


def test_the_first_frame_is_laid_out_once_until_the_size_is_another(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.app._UNCHANGED", 3600)
    laid_out = []
    original = MainScreen._refresh_layout

    def spied(screen, *args, **more):
        laid_out.append(args)
        original(screen, *args, **more)

    monkeypatch.setattr(MainScreen, "_refresh_layout", spied)
    app = Slow()

    async def scene(show: Show) -> None:
        await show.until(lambda: app._batch_count)
        assert len(laid_out) == 1
        await show.pilot.resize_terminal(100, 30)
        await show.until(lambda: len(laid_out) > 1)
        assert app.main.size == (100, 30)

    before_it_is_open(scene, app)


def test_after_the_first_frame_nothing_is_painted_until_a_key_is_pressed(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.app._UNCHANGED", 3600)
    app = Slow()

    async def scene(show: Show) -> None:
        await show.until(lambda: app._batch_count)
        await show.press("a")
        assert not app._batch_count

    before_it_is_open(scene, app)


def test_after_the_first_frame_nothing_is_painted_until_the_session_is_open(monkeypatch):
    monkeypatch.setattr("agentmesh.tui.app._UNCHANGED", 3600)
    app = Slow()

    async def scene(show: Show) -> None:
        await show.until(lambda: app._batch_count)
        await opened(show, app)
        await show.until(lambda: not app._batch_count)

    before_it_is_open(scene, app)


def test_what_is_typed_before_the_session_is_open_stays_in_the_input():
    app = Slow()

    async def scene(show: Show) -> None:
        await show.type("hello")
        await show.sees("❯ hello")
        await opened(show, app)
        await show.press("!")
        assert show.typed == "hello!"

    before_it_is_open(scene, app)
    assert not app.calls


def test_what_is_entered_before_the_session_is_open_waits_for_it_in_sight():
    app = Slow()

    async def scene(show: Show) -> None:
        await show.type("first")
        await show.press("enter")
        await show.type("second")
        await show.press("enter")
        await show.type("third")
        await show.sees("not sent yet: first", "not sent yet: second", "❯ third")
        await opened(show, app)
        await show.until(lambda: len(app.calls) == 2)
        assert show.typed == "third"

    before_it_is_open(scene, app)
    assert [call.typed for call in app.calls] == ["first", "second"]
    assert {agent for _, agent in app.hand.asked} == {board().session.root_id}


def test_keys_that_need_a_session_do_nothing_yet_and_help_is_there():
    async def scene(show: Show) -> None:
        for key in ("ctrl+p", "ctrl+right", "escape", "shift+tab", "f9", "f4", "f6", "ctrl+t", "ctrl+o", "pageup"):
            await show.press(key)
        assert show.app.screen is show.app.main
        await show.press("f1")
        await show.until(lambda: show.app.screen is not show.app.main)

    before_it_is_open(scene, Slow())


def test_why_it_cannot_be_opened_is_left_for_who_started_it_and_what_was_typed_is_in_the_history():
    failure = DatabaseUnreachable("The database is away.")
    app = Slow(failure)

    async def scene(show: Show) -> None:
        await show.type("do not lose this")
        app.gate.set()
        await show.until(lambda: app.failure)

    before_it_is_open(scene, app)
    assert app.failure is failure
    assert app._history.older("") == "do not lose this"


def test_what_is_opened_when_the_screen_was_left_already_is_still_found_and_closed():
    app = Slow()

    async def scene(show: Show) -> None:
        await show.press("ctrl+c", "ctrl+c")
        app.gate.set()

    before_it_is_open(scene, app)
    assert app.ended.is_set()
    assert app.opened
    assert app.failure is None


def test_a_board_that_is_wanted_before_opens_with_the_session():
    app = Slow()

    async def scene(show: Show) -> None:
        await show.press("f12")
        assert isinstance(app.screen, MainScreen)
        await opened(show, app)
        await show.until(lambda: isinstance(app.screen, BoardScreen))
        await show.press("escape")
        await show.post(BoardChanged(board()))
        assert isinstance(app.screen, MainScreen)

    before_it_is_open(scene, app)


def test_f12_before_the_session_opens_no_board_under_a_page_that_came_after_it():
    app = Slow()

    async def scene(show: Show) -> None:
        await show.press("f12", "f1")
        page = app.screen
        assert not isinstance(page, MainScreen)
        await opened(show, app)
        assert app.screen is page
        await show.press("escape")
        await show.post(BoardChanged(board()))
        assert isinstance(app.screen, MainScreen)

    before_it_is_open(scene, app)
