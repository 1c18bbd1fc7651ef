"""Calls that are not done yet. The screen shows them until it shows their outcome."""

from __future__ import annotations

from typing import NamedTuple

from agentmesh.domain.ids import AgentId
from agentmesh.tui.commands.calls import CAPTURED, CUSTOM, CUSTOM_CHILD, SAY, SAY_TO, SHELL, TASK, URGENT, Call

LATE = 0.5
"""Seconds after which a pending call is shown as late; most take a few milliseconds."""

_MESSAGES = frozenset({CUSTOM, CUSTOM_CHILD, SAY, SAY_TO, URGENT})
"""Calls that a person must not lose."""
_TEXTS = _MESSAGES | {CAPTURED, TASK}
"""Calls that send what was typed; the others do something."""
RUNNING = frozenset({CUSTOM, CUSTOM_CHILD, SHELL})
"""Calls that may run a command, which Esc ends."""


class _PendingCall:
    def __init__(self, call: Call, agent_id: AgentId, since: float) -> None:
        self.call, self.agent_id, self.since = call, agent_id, since
        self.done_at: float | None = None


class Unsent(NamedTuple):
    """An input that has not arrived yet."""

    text: str
    is_late: bool
    """Whether it is delayed: the database is away, or other calls come first."""
    is_message: bool = True
    """False for a command, which may also take long."""


class RunningShell(NamedTuple):
    """A shell command that runs."""

    command: str
    since: float
    """``time.monotonic()``."""


class PendingCalls:
    """The calls of one screen, in the order asked; all times are ``time.monotonic()``."""

    def __init__(self) -> None:
        self._asked: list[_PendingCall] = []

    def began(self, call: Call, agent_id: AgentId, now: float) -> None:
        """Note what was asked for."""
        self._asked.append(_PendingCall(call, agent_id, now))

    def since(self, call: Call, agent_id: AgentId) -> float | None:
        """Return when this was asked for; None if it is not pending."""
        found = self._find(call, agent_id)
        return found.since if found else None

    def ended(self, call: Call, agent_id: AgentId, now: float, *, failed: bool = False) -> None:
        """Note that it was carried out; a message stays until a later board shows it."""
        ours = self._find(call, agent_id)
        if ours is None:
            return
        if call.name in (SAY, URGENT) and not failed:
            ours.done_at = now
        else:
            self._asked.remove(ours)

    def _find(self, call: Call, agent_id: AgentId) -> _PendingCall | None:
        return next(
            (one for one in self._asked if one.call == call and one.agent_id == agent_id and not one.done_at), None
        )

    def seen(self, read_at: float) -> None:
        """Drop the calls whose outcome a board read at this time shows."""
        self._asked = [one for one in self._asked if one.done_at is None or one.done_at > read_at]

    def unsent(self, agent_id: AgentId, now: float) -> list[Unsent]:
        """Return an agent's pending input: messages at once, other calls when they are late."""
        found = []
        for one in self._asked:
            is_late = now - one.since >= LATE and one.done_at is None
            if one.agent_id == agent_id and one.call.name != SHELL and (one.call.name in _MESSAGES or is_late):
                found.append(Unsent(one.call.typed or one.call.name, is_late, one.call.name in _TEXTS))
        return found

    @property
    def unsent_count(self) -> int:
        """How many messages no agent's mailbox has yet."""
        return sum(one.call.name in _MESSAGES and one.done_at is None for one in self._asked)

    def shell(self, agent_id: AgentId) -> RunningShell | None:
        """Return the shell command, or the custom command that may run some, in this agent's view."""
        found = (one for one in self._asked if one.agent_id == agent_id and one.call.name in RUNNING)
        return next((RunningShell(_command_of(one.call), one.since) for one in found), None)


def _command_of(call: Call) -> str:
    return call.args[0] if call.name == SHELL else call.typed.strip()
