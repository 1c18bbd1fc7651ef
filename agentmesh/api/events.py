"""What happens in a session, as ``Session.events`` yields it."""

from __future__ import annotations

from dataclasses import dataclass

from agentmesh.domain.rows import AgentView, Request, Row
from agentmesh.domain.states import AgentStatus, Kind


@dataclass(frozen=True, slots=True)
class AgentForked:
    """An agent is new."""

    agent: AgentView


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """An agent's status is another than it was at the last look."""

    agent: AgentView

    @property
    def status(self) -> AgentStatus:
        """What it is now."""
        return AgentStatus(self.agent.status)


@dataclass(frozen=True, slots=True)
class RowAppended:
    """A conversation has one more row: a prompt, an answer, a tool's result, a death."""

    agent: AgentView
    row: Row

    @property
    def kind(self) -> Kind:
        """What kind of row it is."""
        return Kind(self.row.kind)

    @property
    def text(self) -> str:
        """The words in it, "" where it has none (an answer that only calls tools)."""
        return str(self.row.content.get("text") or "")


@dataclass(frozen=True, slots=True)
class LiveText:
    """A piece of an answer that is still being written; a hint that may be lost: the whole answer comes as a row."""

    agent: AgentView
    text: str
    place: int
    """How many characters of the answer came before; 0 also when it begins again."""
    after: int
    """The newest row of the agent's with which its model was asked."""


@dataclass(frozen=True, slots=True)
class RequestAsked:
    """An agent asks a person: ``Session.answer`` answers. Only where the session is ``attended``."""

    agent: AgentView
    request: Request


Event = AgentForked | StatusChanged | RowAppended | LiveText | RequestAsked
