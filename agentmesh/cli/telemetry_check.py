"""Check whether the work of workers is recorded, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agentmesh.cli.finding import Finding, Health

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def telemetry_checks(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the state of traces and log records; no collector is asked."""
    from agentmesh import telemetry
    from agentmesh.export.secrets import Redactor

    if not telemetry.is_wanted(environ):
        yield Finding(Health.OK, "traces", "off; OTEL_EXPORTER_OTLP_ENDPOINT switches them on")
    elif why := telemetry.obstacle(environ):
        yield Finding(Health.NOTE, "traces", f"asked for, and none are sent: {why}")
    else:
        where = next((environ[name] for name in _ENDPOINTS if environ.get(name)), "the standard place")
        yield Finding(Health.OK, "traces", f"of workers that start from here go to {Redactor()(where)}")
    if settings.log.file:
        where = "stderr" if settings.log.file == "-" else settings.log.file
        yield Finding(Health.OK, "log", f"records from {settings.log.level} on go to {where}, as JSON lines")
    else:
        yield Finding(Health.OK, "log", "off; --log-file or `[log] file` switches it on")
