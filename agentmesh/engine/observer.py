"""The observer that hears what agents do. This one does nothing; ``agentmesh.telemetry`` makes spans."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from agentmesh.domain.rows import Agent
from agentmesh.engine.tool import Tool


class Observer:
    """Is told names and figures, never what anybody says. Must not block or raise. This one does nothing."""

    def running(self, _agent: Agent) -> AbstractContextManager[None]:
        """Return the context in which a worker runs the agent, from one rest or wait to the next."""
        return nullcontext()

    def asked(self, agent: Agent, usage: Mapping[str, Any]) -> None:
        """Note that a model call has ended, with its ``recording.usage``."""

    def retried(self, agent: Agent, *, by_load: bool) -> None:
        """Note that a model call is tried again; ``by_load``: it pauses first, because its server has no room."""

    def stepped(self, agent: Agent) -> None:
        """Note that an answer of the model was stored."""

    def failed(self, agent: Agent, kind: str) -> None:
        """Note that the agent's turn ended with an error."""

    def tools(self, _agent: Agent, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the tools with which the agent's calls will run."""
        return tools

    def close(self) -> None:
        """Send everything that is still to be sent, within a moment."""
