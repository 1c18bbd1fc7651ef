"""Follows a call until it is done: goes where its outcome leads, and gives a refused text back to its agent's input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agentmesh.tui.board.navigation import Navigation
from agentmesh.tui.commands.pending import PendingCalls
from agentmesh.tui.input.composer import Composer

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.commands.calls import Call


class FinishedCalls:
    """Moves the view to where a call leads, unless the person has gone elsewhere since: that is their last wish."""

    def __init__(self, navigation: Navigation, composer: Composer, pending_calls: PendingCalls) -> None:
        self._navigation, self._composer, self._pending_calls = navigation, composer, pending_calls

    def follow(self, call: Call, agent_id: AgentId, *, failed: bool, goto: AgentId | None) -> None:
        """Take an outcome: go to ``goto`` unless the person went elsewhere since."""
        has_gone = self.has_gone(call, agent_id)
        self._pending_calls.ended(call, agent_id, time.monotonic(), failed=failed)
        self._composer.set_destination(call, agent_id, goto)
        if not has_gone:
            self._navigation.goto(goto)

    def has_gone(self, call: Call, agent_id: AgentId) -> bool:
        """Whether the person went to an agent since they asked for this: that was their last wish, and holds."""
        asked_at = self._pending_calls.since(call, agent_id)
        return asked_at is not None and self._navigation.moved_at > asked_at

    def give_back(self, text: str, agent_id: AgentId) -> None:
        """Put a text back into the input of the agent that it was for; if that is dead, into the input in view."""
        board = self._navigation.board
        face = board.get(agent_id) if board else None
        towards = self._navigation.in_view if face is None or face.is_dead else agent_id
        if towards is not None:
            self._composer.give_back(towards, text)
