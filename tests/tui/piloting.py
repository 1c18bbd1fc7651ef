"""The app on a screen without a terminal: fed by hand, or by a real database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from textual import events
from textual.keys import _character_to_key
from textual.message import Message
from textual.pilot import Pilot

from agentmesh.config.agent_types import built_in
from agentmesh.config.custom_commands import CustomCommand
from agentmesh.config.schema import Tui
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.store import sessions
from agentmesh.store.tx import Database
from agentmesh.tui.app import MeshApp
from agentmesh.tui.commands.calls import Call
from agentmesh.tui.input.history import History
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.link import Opened
from agentmesh.tui.session.messages import BoardChanged, RowsArrived, TextStreamed
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.session.watching import Watched
from tests.fixtures.mesh import Mesh
from tests.tui.faces import board, face, id_of
from tests.tui.posted import mesh_of

ROOT = id_of("root")
WELCOME = "Nothing is configured.\nA script plays the model.\nType something."


class Hand:
    """Stands where the feed and the actions are: says nothing by itself, and remembers what was asked of it."""

    def __init__(self) -> None:
        self.followed: list[AgentId] = []
        self.dropped: list[AgentId] = []
        self.asked: list[tuple[Call, AgentId]] = []
        self.older_asked: list[int] = []
        self.seen: list[AgentId] = []
        self.watched: list[Watched] = []
        self.sought: list[AgentId] = []

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def follow(self, agent: AgentId) -> None:
        self.followed.append(agent)

    def unfollow(self, agent: AgentId) -> None:
        self.dropped.append(agent)

    def seek(self, agent: AgentId) -> None:
        self.sought.append(agent)

    def see(self, agent: AgentId) -> None:
        self.seen.append(agent)

    def watch(self, watched: Watched) -> None:
        self.watched.append(watched)

    def older(self, agent: AgentId, before_seq: int) -> None:
        self.older_asked.append(before_seq)

    def submit(self, call: Call, in_view: AgentId) -> None:
        self.asked.append((call, in_view))


class Puppet(MeshApp):
    """The app, fed by hand."""

    def __init__(self, keys: dict[str, str] | None = None) -> None:
        self.hand = Hand()
        self.custom: dict[str, CustomCommand] = {}
        place = SimpleNamespace(host="host", os_user="user")
        settings = SimpleNamespace(tui=Tui(theme="dark"), name_among_several="")
        mesh: Any = SimpleNamespace(settings=settings, place=place, has_walls=lambda: True)
        mesh.context_window = lambda _model: None
        opened = Opened(mesh, board().session, WELCOME)
        super().__init__(lambda: opened, keymap=Keymap(keys or {}), look="dark", history=History(None))
        self.animation_level = "none"
        self.main.composer.prompt.cursor_blink = False

    def _make_link(self, *_: Any) -> Any:
        custom = SimpleNamespace(now=lambda: self.custom)
        return SimpleNamespace(
            feed=self.hand,
            actions=self.hand,
            custom=custom,
            types=lambda: {kind.name: kind for kind in built_in()},
            start=self.hand.start,
            get_ready=lambda: None,
            stop=self.hand.stop,
        )

    @property
    def calls(self) -> list[Call]:
        return [call for call, _ in self.hand.asked]


class Show:
    """An app with its pilot."""

    def __init__(self, app: MeshApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot
        self.pressed: list[str] = []
        """All keys that ``press`` pressed, by Textual's names."""

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(strip.text.rstrip() for strip in self.app.screen._compositor.render_strips())

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def typed(self) -> str:
        return self.app.main.composer.prompt.text

    @property
    def in_view(self) -> str:
        assert self.app.main.navigation.face is not None
        return self.app.main.navigation.face.name

    async def press(self, *keys: str) -> None:
        self.pressed += keys
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type a text in one burst, faster than any screen can draw."""
        for letter in text:
            name = "ctrl+j" if letter == "\n" else _character_to_key(letter)
            self.app.post_message(events.Key(name, letter))
        await self.pilot.pause()

    async def post(self, *messages: Message) -> None:
        for message in messages:
            self.app.post_message(message)
        await self.pilot.pause()
        await self.settled()

    async def board(self, *faces: AgentFace, **more: Any) -> Board:
        """Show a board of these agents."""
        shown = board(*faces, **more)
        await self.post(BoardChanged(shown))
        return shown

    async def rows(self, *rows: Row, agent: str = "root", first: bool = True, more: bool = False) -> None:
        """Show rows of an agent: as the first window, or appended."""
        await self.post(RowsArrived(id_of(agent), list(rows), None, more, first))

    async def stream(self, text: str, agent: str = "root", *, anew: bool = False) -> None:
        await self.post(TextStreamed(id_of(agent), text, anew))

    async def settled(self) -> None:
        """Wait until no streamed text is to be drawn and no window moves."""
        scrollback = self.app.main.views.current

        def still() -> bool:
            live = scrollback._live if scrollback else None
            return not (scrollback and scrollback._is_shifting) and not (live and (live._coming or live._is_writing))

        await self.until(still)
        await self.pilot.pause()

    async def until(self, check: Callable[[], Any], timeout: float = 20) -> None:
        """Wait until something is so; fail with the screen when it does not become so."""
        deadline = time.monotonic() + timeout
        while not check():
            assert time.monotonic() < deadline, f"it did not come to that:\n{self.text}"
            await asyncio.sleep(0.02)

    async def sees(self, *texts: str) -> None:
        """Wait until all these are on the screen."""
        await self.until(lambda: all(text in self.text for text in texts))


@asynccontextmanager
async def shown(app: MeshApp, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Show]:
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        show = Show(app, pilot)
        await show.until(lambda: app.session)
        yield show


def puppet(
    scene: Callable[[Show], Awaitable[None]], *, size: tuple[int, int] = (80, 24), keys: dict[str, str] | None = None
) -> Puppet:
    """Play a scene on an app that is fed by hand, with an idle root in view; return the app."""
    app = Puppet(keys)

    async def play() -> None:
        async with shown(app, size) as show:
            await show.board()
            await scene(show)

    asyncio.run(play())
    return app


def real(mesh: Mesh, database: Database, folder: Path) -> MeshApp:
    """Return an app over a real database, whose one worker will never seem to be gone: no other is started."""
    mesh.conn.execute("update agentmesh.workers set seen_at = 'infinity'")
    session = database.run(sessions.get, mesh.session)
    return MeshApp(lambda: Opened(mesh_of(database, folder), session, WELCOME), keymap=Keymap())


def play(scene: Coroutine[Any, Any, None]) -> None:
    """Run a scene."""
    asyncio.run(scene)


def said(seq: int, text: str, kind: Kind = Kind.ASSISTANT, agent: str = "root", **more: Any) -> Row:
    """Return a row with a text."""
    return Row(id_of(agent), seq, kind, {"text": text, **more})


def called(seq: int, name: str, arguments: str = "{}", text: str = "") -> Row:
    """Return a step that calls one tool."""
    return said(seq, text, calls=[{"id": f"call-{seq}", "name": name, "arguments": arguments}])


def result(seq: int, of: int, name: str, value: Any) -> Row:
    """Return the result of the call of a step."""
    content = {"seq": of, "ordinal": 0, "call_id": f"call-{of}", "name": name, "result": value}
    return Row(ROOT, seq, Kind.TOOL_RESULT, content)


def family() -> tuple[AgentFace, ...]:
    """Return three children of the root, the last dead."""
    return face("alpha"), face("beta"), face("gamma", status="dead")


def asked(show: Show) -> list[Call]:
    """Return what was asked of the puppet, in its order."""
    assert isinstance(show.app, Puppet)
    return show.app.calls


async def enter(show: Show, text: str) -> None:
    """Type a text and press Enter."""
    await show.type(text)
    await show.press("enter")
