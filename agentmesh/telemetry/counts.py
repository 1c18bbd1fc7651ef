"""Counts of what a worker's agents do, as Prometheus has them. No label names an agent, a session or anything said."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from agentmesh.domain.rows import Agent
from agentmesh.engine.observer import Observer
from agentmesh.engine.tool import Tool, ToolContext
from agentmesh.telemetry.calls import Observed

OTHER: Final = "other"
"""The label of what has a name that we do not know, so that names of others make no new series."""
_OF_SERVERS: Final = frozenset(
    {"auth", "bad_image", "bad_request", "connection", "context", "cut", "empty", "garbage", "overload", "quota"}
    | {"rate_limit", "server", "timeout", "unknown_model", "unread", "wordless"}
)
"""Kinds of failed model calls."""
OUTCOMES: Final = _OF_SERVERS | {"ok", "cancelled"}
FAILURES: Final = _OF_SERVERS | {"bug", "config", "limit", "loop", "max_steps", "refusals", "report", "workspace"}
"""Kinds of failed turns."""
_CALL_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
_ROUND_TRIP: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Counts(Observer):
    """Counts steps, model calls and tool calls."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.known_tools: Collection[str] = ()
        """Names of tools that have a series each; calls of all others are counted together."""
        self.providers: Collection[str] = ()
        """Names of model servers, likewise."""
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._steps = counter("agentmesh_steps", "Answers of models that were stored.")
        self._calls = counter(
            "agentmesh_model_calls",
            "Finished model calls: ok, cancelled, or the kind of failure.",
            ["provider", "outcome"],
        )
        self._seconds = histogram(
            "agentmesh_model_call_duration_seconds",
            "Duration of model calls, with their retries.",
            ["provider"],
            buckets=_CALL_SECONDS,
        )
        self._first_token = histogram(
            "agentmesh_model_first_token_seconds",
            "Time until the first token of model calls.",
            ["provider"],
            buckets=_CALL_SECONDS,
        )
        self._retries = counter(
            "agentmesh_model_retries",
            "Model calls tried again: after a failure, or after a pause because the server has no room or is away.",
            ["provider", "reason"],
        )
        self._tokens = counter(
            "agentmesh_tokens",
            "Tokens of model calls: input (without cached ones), cached, output.",
            ["provider", "kind"],
        )
        self._cost = counter("agentmesh_cost_usd", "Known cost of model calls in USD.", ["provider"])
        self._unpriced = counter(
            "agentmesh_unpriced_model_calls", "Model calls whose price is not known.", ["provider"]
        )
        self._tool_calls = counter("agentmesh_tool_calls", "Finished tool calls.", ["tool", "outcome"])
        self._failures = counter("agentmesh_turn_failures", "Turns that ended with an error, by its kind.", ["kind"])
        self._round_trip = histogram(
            "agentmesh_listen_round_trip_seconds",
            "Time from a NOTIFY to its arrival on the worker's LISTEN connection, measured every 10 s.",
            buckets=_ROUND_TRIP,
        )

    def asked(self, agent: Agent, usage: Mapping[str, Any]) -> None:
        """Count a model call."""
        provider = self._provider(agent)
        outcome = usage["error"] or "ok"
        self._calls.labels(provider, outcome if outcome in OUTCOMES else OTHER).inc()
        self._seconds.labels(provider).observe(usage["latency_ms"] / 1000)
        if usage["first_token_ms"] is not None:
            self._first_token.labels(provider).observe(usage["first_token_ms"] / 1000)
        cached = min(usage["cached_tokens"], usage["input_tokens"])
        self._tokens.labels(provider, "input").inc(usage["input_tokens"] - cached)
        self._tokens.labels(provider, "cached").inc(cached)
        self._tokens.labels(provider, "output").inc(usage["output_tokens"])
        if usage["cost_usd"] is None:
            self._unpriced.labels(provider).inc()
        else:
            self._cost.labels(provider).inc(float(usage["cost_usd"]))

    def retried(self, agent: Agent, *, by_load: bool) -> None:
        """Count another try."""
        self._retries.labels(self._provider(agent), "pause" if by_load else "failure").inc()

    def stepped(self, _agent: Agent) -> None:
        """Count a step."""
        self._steps.inc()

    def failed(self, _agent: Agent, kind: str) -> None:
        """Count a failed turn."""
        self._failures.labels(kind if kind in FAILURES else OTHER).inc()

    def tools(self, _agent: Agent, tools: dict[str, Tool]) -> dict[str, Tool]:
        """Return the tools, each counting its calls."""
        return {name: Observed(tool, self._called, nullcontext) for name, tool in tools.items()}

    def echoed(self, seconds: float) -> None:
        """Count a round trip of the LISTEN connection."""
        self._round_trip.observe(seconds)

    def _called(self, tool: str, _context: ToolContext, _began: int, error: str) -> None:
        self._tool_calls.labels(tool if tool in self.known_tools else OTHER, "error" if error else "ok").inc()

    def _provider(self, agent: Agent) -> str:
        provider = agent.model.partition("/")[0]
        return provider if provider in self.providers else OTHER
