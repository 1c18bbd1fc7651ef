"""The lines around the input: waits and activity of the agent in view, its neighbours, and the session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentmesh.tui.board import status
from agentmesh.tui.board.neighbours_line import neighbours_line
from agentmesh.tui.board.session_line import status_lines
from agentmesh.tui.commands.pending import PendingCalls, Unsent
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.unread import UnreadMessages
from agentmesh.tui.session.surroundings import CostRate, Surroundings
from agentmesh.tui.widgets.lines import Lines
from agentmesh.tui.widgets.spinner import Spinner

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import AgentFace, Board


_OTHER_LINES = 8
"""Around the layer: a line each of conversation, unread mail, activity, a request, neighbours, input, status, keys."""


class StatusLines:
    """Owns the widgets of these lines; the screen lays them out."""

    def __init__(self, keymap: Keymap) -> None:
        self.unread = UnreadMessages()
        self.status_layer = Lines(id="status-layer")
        self.spinner = Spinner()
        self.separator = Lines(id="separator")
        self.status_line = Lines(id="status-line")
        self.trouble: str | None = None
        """A problem with the database or with a worker, in a sentence; None: there is no problem."""
        self.around = Surroundings()
        """Facts that no board has; only their rate is made from boards."""
        self._rate = CostRate()
        self._doing: tuple[AgentId, str] | None = None
        self._doing_since = 0.0
        """When the activity of the agent in view was first seen; ``time.monotonic()``."""
        self._keymap = keymap

    def refresh(self, board: Board | None, face: AgentFace | None, calls: PendingCalls, held: Sequence[str]) -> None:
        """Show how session and agent stand now; ``held`` is input that waits for an agent on its way into view."""
        agent, trouble, answers = face.id if face else None, self.trouble, self._keymap.label("requests.answer")
        around = self.around._replace(rate=self._rate.take(board)) if board else self.around
        self.status_line.show(lambda width: status_lines(board, agent, width, trouble, answers, around))
        waiting = [Unsent(text, True) for text in held]
        if board is None or agent is None or face is None:
            self.unread.show((), waiting, "")
            return
        key = self._keymap.label("agent.interrupt")
        self.status_layer.show(lambda width: status.wait_lines(board, agent, width, self._most_awaited()))
        shell = calls.shell(agent)
        if self._doing != (agent, face.activity):
            self._doing, self._doing_since = (agent, face.activity), board.read_at
        since = self._doing_since
        self.spinner.show(lambda: status.spinner(board, agent, time.monotonic(), key, shell, answers, since))
        self.separator.show(lambda width: [neighbours_line(board, agent, width)])
        unsent = [*calls.unsent(agent, time.monotonic()), *waiting]
        texts, take_back = [mail.text for mail in face.pending], self._keymap.label("mail.take_back")
        self.unread.show(texts, unsent, take_back, face.view.status)

    def _most_awaited(self) -> int:
        """Return how many lines the status layer may have: a third of the screen, less where that leaves no room."""
        height = self.status_layer.app.size.height
        return max(min(height // 3, height - _OTHER_LINES), 2)
