"""Messages of the person that the agent has not read yet; they can still be taken back."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import one_line
from agentmesh.tui.commands.pending import Unsent
from agentmesh.tui.widgets.plain import Plain

_SHOWN, _SHOWN_ON_SMALL = 3, 1
_SMALL = 16
"""Lines of a screen that has room for little else."""
_WAITS = "⏸ goes with your next message"
"""The agent is idle, after an interrupt or an error: what it did not read waits for the next turn."""
_NEVER_READ = "✗ was never read"
"""The agent is dead."""
_UNREAD, _UNSENT, _NOT_DONE = "⏸ not read yet", "↥ not sent yet", "↥ not done yet"
_BY_STATUS = {AgentStatus.IDLE: _WAITS, AgentStatus.RUNNING: _UNREAD, AgentStatus.DEAD: _NEVER_READ}


class UnreadMessages(Plain):
    """One line per unread message, then one per pending input, the newest last."""

    def __init__(self) -> None:
        super().__init__(id="queued")
        self.display = False

    def show(
        self, texts: Sequence[str], unsent: Sequence[Unsent], key: str, status: AgentStatus = AgentStatus.RUNNING
    ) -> None:
        """Show these; ``key`` takes back the newest that arrived, and ``status`` is the agent's."""
        lines = [_line(_BY_STATUS[status], text) for text in texts]
        if lines and key:
            lines[-1] = Content.assemble(lines[-1], (f"  {key} takes it back", "$dim"))
        lines += [_line(_state(one), one.text) for one in unsent]
        most = _SHOWN_ON_SMALL if self.app.size.height < _SMALL else _SHOWN
        if len(lines) > most:
            lines = [Content.styled(f"… {len(lines) - most:,} more", "$dim"), *lines[-most:]]
        self.display = bool(lines)
        self.update(Content("\n").join(lines))


def _state(unsent: Unsent) -> str:
    late = _UNSENT if unsent.is_message else _NOT_DONE
    return late if unsent.is_late else _UNREAD


def _line(state: str, text: str) -> Content:
    return Content.assemble((f"{state}: ", "$text-warning"), one_line(text, 200))
