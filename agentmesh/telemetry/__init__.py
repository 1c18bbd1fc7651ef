"""Reports of what agents do: log records, and OpenTelemetry traces; both are off unless asked for.

Nothing of OpenTelemetry is imported unless it is wanted, and no failure in it disturbs an agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentmesh.engine.observer import Observer

from agentmesh.domain.extras import install_words
from agentmesh.domain.log import logger

LOG = logger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").lower()
    return exporter in ("otlp", "console") or (not exporter and any(environ.get(name) for name in _ENDPOINTS))


def obstacle(environ: Mapping[str, str]) -> str:
    """Return why wanted traces cannot be sent; empty if they can."""
    protocol = next((environ[name] for name in _PROTOCOLS if environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        return f"OpenTelemetry's protocol {protocol} is not supported here, only http/protobuf"
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError:
        return f"OpenTelemetry is not installed: {install_words('otel')}"
    return ""


def observer(environ: Mapping[str, str]) -> Observer:
    """Return the observer of agents: it writes log records if they are wanted, and traces if the environment asks."""
    from agentmesh.engine.observer import Observer
    from agentmesh.telemetry import records

    spans = _spans(environ)
    if not records.are_wanted():
        return spans or Observer()
    if spans is None:
        return records.Records()
    from agentmesh.telemetry.both import Both

    return Both(spans, records.Records())


def _spans(environ: Mapping[str, str]) -> Observer | None:
    """Return the observer that makes traces, if they are wanted; never raises."""
    if not is_wanted(environ):
        return None
    if why := obstacle(environ):
        LOG.warning("no traces are sent: %s", why)
        return None
    try:
        from agentmesh.telemetry.sending import provider
        from agentmesh.telemetry.spans import Spans

        return Spans(provider(environ))
    except Exception as error:  # noqa: BLE001 - a library's own complaint about its own variables
        LOG.warning("no traces are sent: %s", error)
        return None
