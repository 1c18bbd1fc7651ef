"""The session that a screen shows. It hands the feed's messages on to the app, and the app's calls to the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.tui.session.surroundings import SurroundingsReader

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.domain.ids import AgentId, SessionId
    from agentmesh.domain.rows import Session
    from agentmesh.tui.commands.calls import Call
    from agentmesh.tui.link import Link, Opened
    from agentmesh.tui.screen import MainScreen
    from agentmesh.tui.session.messages import RowsArrived


def prepare(main: MainScreen, opened: Opened, session: Session) -> None:
    """Set a screen up by the settings, and by whether the session's files are on this host."""
    settings, presenter = opened.mesh.settings.tui, main.presenter
    presenter.rings, presenter.opens_dialogs = settings.bell, settings.open_requests
    if settings.vim:
        main.composer.prompt.use_vim()
    presenter.has_files = session.host == opened.mesh.place.host
    if presenter.has_files:
        main.composer.mention_line.workdir = main.views.workdir = Path(session.workdir)


def find_session(opened: Opened, session: SessionId, database: str) -> tuple[Mesh, Session]:
    """Return a session and its mesh, from ``database`` if there are several; this may take a moment."""
    from agentmesh.store import sessions

    if opened.databases is None or not database:
        return opened.mesh, opened.mesh.database.run(sessions.get, session)
    answers = opened.databases.ask(lambda mesh: (mesh, mesh.database.run(sessions.get, session)), [database])
    return answers.some()[database]


class ShownSession:
    """One session on its screen. After ``end`` the app gets no message of it."""

    def __init__(
        self,
        main: MainScreen,
        opened: Opened,
        session: Session,
        make_link: Callable[[Callable[[Message], Any]], Link],
        post: Callable[[Message], Any],
    ) -> None:
        """``make_link`` makes the link for a function that posts; ``post`` posts to the app."""
        self._main, self._post, self._has_ended = main, post, False
        self.link = make_link(self._forward)
        main.composer.custom = lambda: self.link.custom.now()  # noqa: PLW0108  made when first asked for
        main.composer.types = lambda: self.link.types()  # noqa: PLW0108  the same
        self._around = SurroundingsReader(opened.mesh, session, has_files=main.presenter.has_files)

    def _forward(self, message: Message) -> Any:
        return not self._has_ended and self._post(message)

    def end(self) -> None:
        """Let no more messages through; the link has to be stopped, which may take a moment."""
        self._has_ended = True

    def submit(self, call: Call, agent_id: AgentId, at: float) -> None:
        """Have a call carried out, and show that it is on its way."""
        self._main.asked(call, agent_id, at)
        self.link.actions.submit(call, agent_id)

    def rows_arrived(self, rows: RowsArrived) -> None:
        """Count the context again if these rows are of the agent in view."""
        if rows.agent_id == self._main.navigation.in_view:
            self._around.rows_arrived()

    async def look_around(self) -> None:
        """Read the facts of the status line that no board has, and show them."""
        if face := self._main.navigation.face:
            self._main.show_around(await asyncio.to_thread(self._around.read, face.id, face.view.model))
