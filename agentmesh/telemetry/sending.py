"""How spans leave this process: in batches, on a thread of OpenTelemetry, configured by its environment variables."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from agentmesh import __version__


class SessionIds(RandomIdGenerator):
    """A span without a parent gets its session's trace: the session's id, in every process."""

    def __init__(self) -> None:
        self._local = threading.local()

    def next_trace(self, trace: int) -> None:
        """Set the trace for this thread's next span without a parent."""
        self._local.trace = trace

    def generate_trace_id(self) -> int:
        """Return that trace's id, or a random one if none was set."""
        trace: int | None = getattr(self._local, "trace", None)
        self._local.trace = None
        return trace or super().generate_trace_id()


def provider(environ: Mapping[str, str]) -> TracerProvider:
    """Return the provider that makes and sends spans; the library reads other variables (headers, sampler, limits)."""
    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    about = {"service.version": __version__} | ({} if named else {"service.name": "agentmesh"})
    # Not at the interpreter's exit: an exporter that cannot reach its server would delay it.
    made = TracerProvider(resource=Resource.create(about), id_generator=SessionIds(), shutdown_on_exit=False)
    to_console = environ.get("OTEL_TRACES_EXPORTER", "").lower() == "console"
    made.add_span_processor(
        BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr) if to_console else OTLPSpanExporter())
    )
    return made
