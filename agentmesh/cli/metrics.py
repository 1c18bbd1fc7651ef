"""``agentmesh worker --metrics``: where to serve them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmesh.cli.prerequisites import optional_package
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.extras import install_words
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.telemetry.metrics import WorkerMetrics

_PACKAGES: Final = frozenset({"prometheus_client"})
_LOOPBACK: Final = "127.0.0.1"
_ADDRESS: Final = re.compile(r"(?:(?P<host>[^\s:\[\]/]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int


def read_address(text: str) -> Address:
    """Return the address that is meant by ``9464``, ``127.0.0.1:9464`` or ``[::1]:9464``; raise UsageError."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65_535:
        raise UsageError(
            f"{one_line(text, 60)!r} is no address for metrics.", hint="Write it as 127.0.0.1:9464 or 9464."
        )
    return Address((found["host"] or _LOOPBACK).strip("[]"), int(found["port"]))


@contextmanager
def serving(text: str) -> Iterator[WorkerMetrics]:
    """Serve a worker's metrics at this address within the block; print where. Raise UsageError if that cannot be."""
    host, port = read_address(text)
    with optional_package("Metrics need", "prometheus-client", _PACKAGES, install_words("metrics")):
        from agentmesh.telemetry.metrics import WorkerMetrics
    metrics = WorkerMetrics()
    try:
        served = metrics.served(host, port)
    except OSError as error:
        raise UsageError(
            f"Metrics cannot be served at {host}, port {port}: {error.strerror}.",
            hint="Name another address, or port 0.",
        ) from error
    with served:
        shown = f"[{host}]" if ":" in host else host
        say(f"metrics: http://{shown}:{served.port}/metrics")
        yield metrics
