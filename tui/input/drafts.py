"""The unsent input of each agent."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.domain.ids import AgentId
from agentmesh.domain.log import logger

LOG = logger(__name__)


class Drafts:
    """The unsent input of each agent."""

    def __init__(self) -> None:
        self._texts: dict[AgentId, str] = {}

    def take(self, agent: AgentId) -> str:
        """Return the agent's draft and forget it."""
        return self._texts.pop(agent, "")

    def keep(self, agent: AgentId, text: str) -> None:
        """Remember an agent's unsent input."""
        self._texts.pop(agent, None)
        if text:
            self._texts[agent] = text

    @property
    def texts(self) -> Sequence[str]:
        """All drafts, the one that was left last at the end."""
        return list(self._texts.values())

    def give_back(self, agent: AgentId, text: str) -> None:
        """Put a text that could not be sent before the agent's draft."""
        self.keep(agent, "\n".join(filter(None, [text, self.take(agent)])))
