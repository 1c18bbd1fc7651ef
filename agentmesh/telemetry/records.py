"""Log records of the work of agents, through the standard library's logging; names and figures, never any content.

While an agent runs, every record of its thread has the ids (``record_ids.ids``) of the session, agent and worker, and
the step and the call if there is one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final

from agentmesh.domain.ids import short
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Agent
from agentmesh.engine.observer import Observer
from agentmesh.engine.tool import Tool, ToolContext
from agentmesh.telemetry.calls import Observed
from agentmesh.telemetry.record_ids import EVENT, FIGURES, records_about

LOG: Final = logger(__name__)


def are_wanted() -> bool:
    """Whether any handler takes them: unwanted records cost nothing."""
    return LOG.isEnabledFor(logging.INFO)


class Records(Observer):
    """Makes log records."""

    @contextmanager
    def running(self, agent: Agent) -> Iterator[None]:
        """Put the agent's ids into the thread's records, and record when it begins and ends."""
        with _records_about_agent(agent):
            began = time.monotonic()
            _tell("agent.running", f"{_named(agent)} runs", logging.INFO)
            try:
                yield
            finally:
                seconds = time.monotonic() - began
                _tell("agent.resting", f"{_named(agent)} rests or waits", logging.INFO, ms=round(seconds * 1000))

    def asked(self, agent: Agent, usage: Mapping[str, Any]) -> None:
        """Record a model call."""
        error = usage["error"]
        words = f"{_named(agent)} asked {agent.model}: {usage['input_tokens']}+{usage['output_tokens']} tokens"
        figures = {
            "model": agent.model,
            "input_tokens": usage["input_tokens"],
            "output_tokens": usage["output_tokens"],
            "cached_tokens": usage["cached_tokens"],
            "estimated": usage["estimated"],
            "cost_usd": None if usage["cost_usd"] is None else float(usage["cost_usd"]),
            "ms": usage["latency_ms"],
            "first_token_ms": usage["first_token_ms"],
            "finish_reason": usage["finish_reason"],
            "error": error,
        }
        level = logging.WARNING if error and error != "cancelled" else logging.INFO
        _tell("model.call", f"{words}, {usage['latency_ms']} ms{f', {error}' if error else ''}", level, **figures)

    def failed(self, agent: Agent, kind: str) -> None:
        """Record that the agent's turn ended with an error."""
        _tell("turn.failed", f"{_named(agent)}: its turn failed: {kind}", logging.WARNING, error=kind)

    def tools(self, agent: Agent, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the tools, each recording its calls; they may run on threads of their own."""
        return {
            name: Observed(tool, partial(_called, agent), partial(_records_about_agent, agent))
            for name, tool in tools.items()
        }


def _called(agent: Agent, tool: str, context: ToolContext, began: int, error: str) -> None:
    lease = context.lease
    ms = (time.time_ns() - began) // 1_000_000
    place = {} if lease is None else {"step": lease.seq, "call": lease.ordinal}
    words = f"{_named(agent)} called {tool}: {ms} ms{f', {error}' if error else ''}"
    _tell("tool.call", words, logging.INFO, **place, tool=tool, ms=ms, error=error or None)


def _records_about_agent(agent: Agent) -> AbstractContextManager[None]:
    about = {
        "session": str(agent.session_id),
        "agent": str(agent.id),
        "name": agent.name,
        "parent": str(agent.parent_id) if agent.parent_id else None,
        "worker": str(agent.worker_id) if agent.worker_id else None,
        "turn": agent.turn,
    }
    return records_about(about)


def _named(agent: Agent) -> str:
    return f"{agent.name} ({short(agent.id)})"


def _tell(event: str, words: str, level: int, **figures: Any) -> None:
    LOG.log(level, "%s", words, extra={EVENT: event, FIGURES: figures})
