"""Connects a screen with one session: feed and command runner. Imported after the first frame, with the database."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentmesh.tui.commands.run import CommandRunner
from agentmesh.tui.session.feed import Feed
from agentmesh.tui.session.schema_watch import SchemaWatch

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.config.agent_types import AgentType
    from agentmesh.config.custom_commands import CustomCommands
    from agentmesh.domain.rows import Session
    from agentmesh.tui.session.state import Board


class Opened(NamedTuple):
    """The session, opened while the first frame was on the screen, and its surroundings."""

    mesh: Mesh
    session: Session
    welcome: str = ""
    """Shown at the top of an empty root (three lines at the first start without a model); it is no row."""
    board: Board | None = None
    """The first board, read while other modules were imported."""
    databases: Databases | None = None
    """All databases, if there are several; ``mesh`` belongs to the session in view."""
    remark: str = ""
    """A remark for the person about the databases, at the start."""


class Link:
    """Reads a session and carries out what is asked for in it."""

    def __init__(
        self,
        mesh: Mesh,
        session: Session,
        post: Callable[[Message], Any],
        board: Board | None = None,
        databases: Databases | None = None,
    ) -> None:
        """``post`` takes every message of ``session.messages``; ``board`` is one that is shown already.

        ``databases`` are all of them, if there are several.
        """
        schema = SchemaWatch(mesh.database)
        self.feed = Feed(mesh, session, post, schema, board, databases)
        self.actions = CommandRunner(mesh, session, post, schema, databases, lambda: self.feed.root_model)
        self._mesh, self._session = mesh, session

    @cached_property
    def custom(self) -> CustomCommands:
        """The custom commands of the session's directory."""
        is_here = self._session.host == self._mesh.place.host
        return self._mesh.custom_commands(Path(self._session.workdir) if is_here else None)

    def types(self) -> Mapping[str, AgentType]:
        """Return the agent types of the session's directory; types in a directory of another host are not known."""
        return self._mesh.agent_types(Path(self._session.workdir)).types

    def start(self) -> None:
        """Begin."""
        self.feed.start()
        self.actions.start()

    def get_ready(self) -> None:
        """Load the modules of commands and answers in the background, once the session is shown."""
        threading.Thread(target=self._load, name="later", daemon=True).start()

    def _load(self) -> None:
        import agentmesh.tui.board.board_screen
        import agentmesh.tui.commands.handlers  # what it imports is what takes its time
        import agentmesh.tui.conversation.model_message  # noqa: F401  it takes 0.2 s: too long at the first words
        from agentmesh.tui.conversation import markdown

        markdown.parse("")  # makes the parser
        self.custom.load()
        self.types()
        gc.freeze()  # these modules stay, like those of the start

    def stop(self) -> None:
        """Finish the requested calls, then stop; idempotent. May take a moment."""
        self.actions.stop()
        self.feed.stop()
