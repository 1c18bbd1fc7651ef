"""Spans of agents, model calls and tool calls, in the conventions for generative AI (``gen_ai.*``); no content.

An agent's span is one period in which a worker ran it: from a wake-up to the next rest or wait. The spans of a session
are one trace. A span has its agent's parent as its own only if this process ran that; otherwise the attributes name it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode

from agentmesh import __version__
from agentmesh.domain.ids import AgentId
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Agent
from agentmesh.engine.observer import Observer
from agentmesh.engine.tool import Tool, ToolContext
from agentmesh.telemetry.calls import Observed
from agentmesh.telemetry.sending import SessionIds

LOG = logger(__name__)

P = ParamSpec("P")
Result = TypeVar("Result")

_REMEMBERED = 10_000
"""Agents whose last span is remembered as the parent of their children's spans."""
_CLOSING = 3.0
"""Seconds that the end of a process waits until the last spans are sent."""


def _quietly(
    method: Callable[Concatenate[Spans, P], Result],
) -> Callable[Concatenate[Spans, P], Result | None]:
    """Keep any failure in here from reaching the engine."""

    def guarded(self: Spans, /, *args: P.args, **kwargs: P.kwargs) -> Result | None:
        try:
            return method(self, *args, **kwargs)
        except Exception:  # whatever a library does: the agent's work is worth more than its trace
            LOG.debug("a span was lost", exc_info=True)
            return None

    return guarded


class Spans(Observer):
    """Makes spans."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("agentmesh", __version__)
        self._lock = threading.Lock()
        self._open: dict[AgentId, Span] = {}
        self._last: OrderedDict[AgentId, SpanContext] = OrderedDict()

    @contextmanager
    def running(self, agent: Agent) -> Iterator[None]:
        """Open the agent's span for the block."""
        self._begin(agent)
        try:
            yield
        except BaseException as error:
            self.failed(agent, type(error).__name__)
            raise
        finally:
            self._end(agent)

    @_quietly
    def _begin(self, agent: Agent) -> None:
        with self._lock:
            parent = self._last.get(agent.parent_id) if agent.parent_id else None
        if isinstance(self._provider.id_generator, SessionIds):
            self._provider.id_generator.next_trace(agent.session_id.int)
        span = self._tracer.start_span(
            f"invoke_agent {agent.name}",
            trace.set_span_in_context(NonRecordingSpan(parent), Context()) if parent else Context(),
            SpanKind.INTERNAL,
            {**_about(agent, "invoke_agent"), "agentmesh.agent.depth": agent.depth},
        )
        with self._lock:
            self._open[agent.id] = span
            self._last[agent.id] = span.get_span_context()
            self._last.move_to_end(agent.id)
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)

    @_quietly
    def _end(self, agent: Agent) -> None:
        with self._lock:
            span = self._open.pop(agent.id, None)
        if span:
            span.end()

    @_quietly
    def failed(self, agent: Agent, kind: str) -> None:
        """Mark the agent's span as failed."""
        with self._lock:
            span = self._open.get(agent.id)
        if span:
            _mark(span, kind)

    @_quietly
    def asked(self, agent: Agent, usage: Mapping[str, Any]) -> None:
        """Make the span of a finished model call from its usage."""
        ended = time.time_ns()
        span = self._tracer.start_span(
            f"chat {_model(agent)}",
            self._inside(agent.id),
            SpanKind.CLIENT,
            {**_about(agent, "chat"), **_used(usage)},
            start_time=ended - int(usage["latency_ms"] * 1e6),
        )
        if usage["error"]:
            _mark(span, usage["error"])
        span.end(ended)

    def tools(self, agent: Agent, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the tools, each making the spans of its calls."""
        return {name: Observed(tool, partial(self.called, agent), nullcontext) for name, tool in tools.items()}

    @_quietly
    def called(self, agent: Agent, tool: str, context: ToolContext, began: int, error: str) -> None:
        """Make the span of a finished tool call."""
        about = {**_about(agent, "execute_tool"), "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
        if context.lease:
            about["agentmesh.step"] = context.lease.seq or 0
        span = self._tracer.start_span(
            f"execute_tool {tool}", self._inside(agent.id), SpanKind.INTERNAL, about, start_time=began
        )
        if error:
            _mark(span, error)
        span.end()

    def close(self) -> None:
        """Send the remaining spans; do not wait for a server that does not answer."""
        sending = threading.Thread(target=self._shutdown, name="telemetry", daemon=True)
        sending.start()
        sending.join(_CLOSING)

    @_quietly
    def _shutdown(self) -> None:
        self._provider.shutdown()

    def _inside(self, agent: AgentId) -> Context:
        with self._lock:
            span = self._open.get(agent)
        return trace.set_span_in_context(span, Context()) if span else Context()


def _about(agent: Agent, operation: str) -> dict[str, str | int]:
    """Return the attributes of the agent."""
    about: dict[str, str | int] = {
        "gen_ai.operation.name": operation,
        "gen_ai.agent.id": str(agent.id),
        "gen_ai.agent.name": agent.name,
        "gen_ai.conversation.id": str(agent.session_id),
        "gen_ai.provider.name": agent.model.partition("/")[0],
        "gen_ai.request.model": _model(agent),
        "agentmesh.turn": agent.turn,
    }
    return about | ({"agentmesh.parent_agent.id": str(agent.parent_id)} if agent.parent_id else {})


def _used(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a model call."""
    used = {
        "gen_ai.usage.input_tokens": usage["input_tokens"],
        "gen_ai.usage.output_tokens": usage["output_tokens"],
        "gen_ai.usage.cache_read.input_tokens": usage["cached_tokens"],
        "gen_ai.request.stream": True,
        "agentmesh.usage.estimated": usage["estimated"],
    }
    if usage["finish_reason"]:
        used["gen_ai.response.finish_reasons"] = [usage["finish_reason"]]
    if usage["first_token_ms"] is not None:
        used["gen_ai.response.time_to_first_chunk"] = usage["first_token_ms"] / 1000
    if usage["cost_usd"] is not None:
        used["agentmesh.cost_usd"] = float(usage["cost_usd"])
    return used


def _model(agent: Agent) -> str:
    return agent.model.partition("/")[2]


def _mark(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))
