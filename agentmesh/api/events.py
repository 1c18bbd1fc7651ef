"""The events of a session, which ``Session.events`` yields."""

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
    """An agent's status has changed since the last look."""

    agent: AgentView

    @property
    def status(self) -> AgentStatus:
        """The current status."""
        return AgentStatus(self.agent.status)


@dataclass(frozen=True, slots=True)
class RowAppended:
    """A conversation has one more row: a prompt, an answer, a tool's result, a death."""

    agent: AgentView
    row: Row

    @property
    def kind(self) -> Kind:
        """The kind of the row."""
        return Kind(self.row.kind)

    @property
    def text(self) -> str:
        """Its text, "" if it has none (an answer that only calls tools)."""
        return str(self.row.content.get("text") or "")


@dataclass(frozen=True, slots=True)
class LiveText:
    """A piece of an answer that is still being written; a hint that may get lost: the whole answer follows as a row."""

    agent: AgentView
    text: str
    place: int
    """How many characters of the answer came before; 0 again if the answer restarts."""
    after: int
    """The agent's newest row that its model was sent."""


@dataclass(frozen=True, slots=True)
class RequestAsked:
    """An agent asks a person: ``Session.answer`` answers. Only if the session is ``attended``."""

    agent: AgentView
    request: Request


Event = AgentForked | StatusChanged | RowAppended | LiveText | RequestAsked
