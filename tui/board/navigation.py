"""Which agent is in view, and the ways to another: neighbours, one that needs a person, one that was just made."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from agentmesh.domain.ids import short
from agentmesh.tui.board import rotation
from agentmesh.tui.board.attention import needs_person

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import AgentFace, Board

_NOBODY = {
    "parent": "The root has no parent",
    "child": "It has no children",
    "previous": "It has no siblings",
    "next": "It has no siblings",
}


class Navigation:
    """Knows the board and the agent in view; the screen shows what it decides."""

    def __init__(
        self,
        bring: Callable[[Board, AgentFace], None],
        say: Callable[[str], None],
        seek: Callable[[AgentId], None],
    ) -> None:
        """``bring`` shows an agent, ``say`` tells why none comes, ``seek`` asks for one that is not on the board."""
        self.board: Board | None = None
        self.in_view: AgentId | None = None
        self.moved_at = 0.0
        """When the person last went to an agent; ``time.monotonic()``."""
        self._expected: AgentId | None = None
        """The agent that comes into view as soon as the board has it: a child that was just made."""
        self._bring_face, self._say, self._seek = bring, say, seek

    @property
    def face(self) -> AgentFace | None:
        """The agent in view."""
        return self.board.get(self.in_view) if self.board and self.in_view else None

    def show_board(self, board: Board) -> None:
        """Take a new board; keep the agent in view, or bring the expected one."""
        self.board = board
        if self._expected in board.faces:
            self.goto(self._expected)
        else:
            self._bring(rotation.settle(board, self.in_view or board.session.root_id))  # the expected may still come

    def go(self, agent_id: AgentId, name: str = "It") -> None:
        """Bring an agent into view because the person wants it; results of earlier commands move the view no more."""
        if self.board and self.board.is_whole and self.board.get(agent_id) is None:
            self._say_reaped(agent_id, name)
        else:
            self.moved_at = time.monotonic()
            self.goto(agent_id)

    def goto(self, agent_id: AgentId | None) -> None:
        """Bring an agent into view; if the board does not have it yet, as soon as it does."""
        if self.board is None or agent_id is None:
            return
        is_known = self.board.get(agent_id) is not None
        self._expected = None if is_known else agent_id
        if is_known:
            self._bring(agent_id)
        else:
            self._seek(agent_id)

    def expect(self, agent_id: AgentId) -> None:
        """Bring an agent into view as soon as there is a board that has it."""
        self._expected = agent_id
        self._seek(agent_id)

    def missed(self, agent_id: AgentId, name: str) -> None:
        """Say why an expected agent does not come into view."""
        if self._expected == agent_id:
            self._expected = None
            self._say_reaped(agent_id, name)

    def rotate(self, direction: rotation.Direction) -> None:
        """Bring a neighbour into view."""
        if self.board is None or self.in_view is None:
            return
        towards = rotation.rotate(self.board, self.in_view, direction)
        if towards == self.in_view:
            self._say(_NOBODY[direction])
        else:
            self.go(towards)

    def go_to_next_need(self) -> None:
        """Go to the next agent that cannot go on without a person; else to one that ended and that nobody has seen."""
        faces = list(self.board.faces.values()) if self.board else []
        here = next((n for n, face in enumerate(faces) if face.id == self.in_view), 0)
        others = [face for face in (*faces[here + 1 :], *faces[:here]) if needs_person(face) or face.view.unseen]
        if others:
            self.go(min(others, key=lambda face: face.need.rank).id)
        else:
            self._say("No other agent needs you")

    def running_below(self) -> list[AgentFace]:
        """Return the running descendants of the agent in view."""
        if self.face is None or self.board is None:
            return []
        return [one for one in self.board.subtree(self.face.id) if one.is_running and one.id != self.face.id]

    def _bring(self, agent_id: AgentId) -> None:
        if self.board is not None and (face := self.board.get(agent_id)) is not None:
            self.in_view = agent_id
            self._bring_face(self.board, face)

    def _say_reaped(self, agent_id: AgentId, name: str) -> None:
        self._say(f"{name} has been reaped: agentmesh log {short(agent_id)} shows what it did")
