"""Who is told what agents do: nobody here; ``agentmesh.telemetry`` makes spans of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from agentmesh.domain.rows import Agent
from agentmesh.engine.tool import Tool


class Observer:
    """Is told of names and figures, never of what anybody says; does not block, and does not raise. Tells nobody."""

    def running(self, _agent: Agent) -> AbstractContextManager[None]:
        """Return what a worker runs the agent in, from one rest or wait to the next."""
        return nullcontext()

    def asked(self, agent: Agent, usage: Mapping[str, Any]) -> None:
        """Hear of a model call that has ended: ``recording.usage``."""

    def failed(self, agent: Agent, kind: str) -> None:
        """Hear that its turn ended with an error."""

    def tools(self, _agent: Agent, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the tools by which the agent's calls are to be run."""
        return tools

    def close(self) -> None:
        """Tell what is still to be told, within a moment."""
