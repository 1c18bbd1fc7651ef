"""Two observers as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agentmesh.domain.rows import Agent
from agentmesh.engine.observer import Observer
from agentmesh.engine.tool import Tool


class Both(Observer):
    """Two observers; the first is nearer to what they observe."""

    def __init__(self, first: Observer, second: Observer) -> None:
        self._first, self._second = first, second

    @contextmanager
    def running(self, agent: Agent) -> Iterator[None]:
        """Run inside both."""
        with self._second.running(agent), self._first.running(agent):
            yield

    def asked(self, agent: Agent, usage: Mapping[str, Any]) -> None:
        """Report to both."""
        self._first.asked(agent, usage)
        self._second.asked(agent, usage)

    def retried(self, agent: Agent, *, by_load: bool) -> None:
        """Report to both."""
        self._first.retried(agent, by_load=by_load)
        self._second.retried(agent, by_load=by_load)

    def stepped(self, agent: Agent) -> None:
        """Report to both."""
        self._first.stepped(agent)
        self._second.stepped(agent)

    def failed(self, agent: Agent, kind: str) -> None:
        """Report to both."""
        self._first.failed(agent, kind)
        self._second.failed(agent, kind)

    def tools(self, agent: Agent, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return tools that report to both."""
        return self._second.tools(agent, self._first.tools(agent, tools))

    def close(self) -> None:
        """Close both."""
        self._first.close()
        self._second.close()
