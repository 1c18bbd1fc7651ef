"""Shows the scrollback of the agent in view. Recent ones are kept; others are rebuilt at the same position."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.containers import Container

from agentmesh.domain.ids import AgentId
from agentmesh.tui.session.feed_calls import Follow, Unfollow
from agentmesh.tui.widgets.plain import Plain

if TYPE_CHECKING:
    from agentmesh.domain.rows import Row
    from agentmesh.tui.conversation.position import Folds, ReadingPosition
    from agentmesh.tui.conversation.scrollback import Scrollback
    from agentmesh.tui.session.messages import RowsArrived

LIVE = 3
"""Agents whose scrollbacks are kept."""


class Views(Container):
    """The place of the scrollbacks."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[AgentId, Scrollback] = {}
        """The most recently visited last."""
        self._positions: dict[AgentId, ReadingPosition] = {}
        self._folds: dict[AgentId, Folds] = {}
        self._coming: dict[AgentId, list[str]] = {}
        """Streamed text of agents that are out of view."""
        self._sought: dict[AgentId, int] = {}
        """Rows to go to when their agents come into view."""
        self._in_view: AgentId | None = None
        self.workdir: Path | None = None
        """Where the session's files are; None if they are on another machine."""

    @property
    def current(self) -> Scrollback | None:
        """The scrollback in sight."""
        return self._kept.get(self._in_view) if self._in_view else None

    def show(self, agent_id: AgentId) -> None:
        """Bring an agent into view."""
        if agent_id == self._in_view:
            return
        if left := self.current:
            self._positions[left.agent_id] = left.reading_position  # a hidden widget has no position
        self._in_view = agent_id
        scrollback = self._kept.pop(agent_id, None)
        if scrollback is None:
            from agentmesh.tui.conversation.position import Folds, ReadingPosition
            from agentmesh.tui.conversation.scrollback import Scrollback  # with the session, not before the first frame

            folds = self._folds.setdefault(agent_id, Folds())
            scrollback = Scrollback(agent_id, self._positions.pop(agent_id, ReadingPosition()), folds, self.workdir)
            if agent_id in self._sought:
                scrollback.seek(self._sought.pop(agent_id))
            self.mount(scrollback)
        self._kept[agent_id] = scrollback
        for other in self._kept.values():
            other.display = other is scrollback
        if text := "".join(self._coming.pop(agent_id, [])):
            scrollback.stream(text)
        while len(self._kept) > LIVE:
            self._drop(next(iter(self._kept)))
        # To the app itself: while the screen handles a message, Textual lets no other bubble beyond it.
        self.app.post_message(Follow(agent_id))

    def seek(self, agent_id: AgentId, seq: int) -> None:
        """Go to a row of an agent, when it comes into view."""
        if scrollback := self._kept.get(agent_id):
            scrollback.seek(seq)
        else:
            self._sought[agent_id] = seq

    async def fill(self, first: RowsArrived, parent: str, welcome: str) -> None:
        """Replace the rows of an agent by its newest, below those that it inherited from ``parent``, folded.

        ``welcome`` follows them, unless it is empty.
        """
        from agentmesh.tui.conversation.entries import Inherited  # with the session, not before the first frame

        self._coming.pop(first.agent_id, None)
        if scrollback := self._kept.get(first.agent_id):
            known = first.inherited
            inherited = Inherited("inherited", parent, first.inherited_count, tuple(known)) if known else None
            await scrollback.fill(first.rows, inherited, first.more)
            if welcome:
                await scrollback.mount(Plain(welcome, classes="welcome"))

    async def append(self, agent_id: AgentId, rows: Sequence[Row]) -> None:
        """Show rows that were added; they end the message in progress."""
        scrollback = self._kept.get(agent_id)
        if scrollback is None:
            return
        if text := "".join(self._coming.pop(agent_id, [])):
            scrollback.stream(text)
        await scrollback.append(rows)

    async def prepend(self, agent_id: AgentId, rows: Sequence[Row], more: bool) -> None:
        """Take older rows."""
        if scrollback := self._kept.get(agent_id):
            await scrollback.prepend(rows, more)

    def stream(self, agent_id: AgentId, text: str, *, anew: bool = False) -> None:
        """Show text of a message in progress; keep it while out of view. ``anew`` replaces the text so far."""
        scrollback = self._kept.get(agent_id)
        if scrollback is None:
            return
        if anew:
            self._coming.pop(agent_id, None)
            scrollback.void()
        if agent_id == self._in_view:
            scrollback.stream(text)
        else:
            self._coming.setdefault(agent_id, []).append(text)

    def show_output(self, agent_id: AgentId, key: str, text: str) -> None:
        """Show what a running call has written last."""
        if scrollback := self._kept.get(agent_id):
            scrollback.show_output(key, text)

    def _drop(self, agent_id: AgentId) -> None:
        scrollback = self._kept.pop(agent_id)
        self._coming.pop(agent_id, None)
        scrollback.remove()
        self.app.post_message(Unfollow(agent_id))
