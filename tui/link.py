"""What connects a screen with one session: the side of it that needs the database, imported after the first frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui.actions import Actions
from tui.feed import Feed

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session


@dataclass(frozen=True, slots=True)
class Opened:
    """What was made while the screen was there already."""

    mesh: Mesh
    session: Session
    welcome: str = ""
    """Shown at the top of an empty root (three lines at the first start without a model); it is no row."""


class Link:
    """Reads a session and carries out what is asked for in it."""

    def __init__(self, mesh: Mesh, session: Session, post: Callable[[Message], Any]) -> None:
        """``post`` is given all messages of ``tui.messages``."""
        self.feed = Feed(mesh, session, post)
        self.actions = Actions(mesh, session, post)

    def start(self) -> None:
        """Begin."""
        self.feed.start()
        self.actions.start()

    def stop(self) -> None:
        """Carry out what was asked for, then end; idempotent. (May take a moment.)"""
        self.actions.stop()
        self.feed.stop()
