"""Metrics of a worker for Prometheus: counts of its agents' work, its own state, and figures of the whole mesh.

Only ``counts`` and this module know the client of Prometheus. Only a worker that was asked for metrics imports them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Self
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Info, ProcessCollector, disable_created_metrics, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from agentmesh import __version__
from agentmesh.engine.worker import Worker
from agentmesh.store import metrics
from agentmesh.store.metrics import MeshFigures
from agentmesh.store.tx import Database
from agentmesh.telemetry.counts import Counts
from agentmesh.telemetry.mesh_figures import LatestFigures


class WorkerMetrics:
    """The metrics of one worker."""

    def __init__(self) -> None:
        # Otherwise each count has a second series, with the time of its start.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self.counts = Counts(self._registry)
        Info("agentmesh_build", "The program.", registry=self._registry).info({"version": __version__})
        ProcessCollector(registry=self._registry)

    def watch(self, worker: Worker, database: Database, slots: int) -> None:
        """Report the state of this worker, and the mesh as its database has it."""
        figures = LatestFigures(lambda: database.run(metrics.mesh, idempotent=True))
        self._registry.register(_State(lambda: [*_own(worker, slots), *_connections(database), *_mesh(figures.get())]))

    def served(self, host: str, port: int) -> MetricsServer:
        """Answer scrapes at this address until the result is closed; raise OSError if it cannot be used."""
        return MetricsServer(*start_http_server(port, host, self._registry))


class MetricsServer:
    """A server that answers scrapes; a context manager that ends it."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server = server
        self._thread = thread
        self.port: int = server.server_port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _State(Collector):
    """Figures that are read when somebody asks for them."""

    def __init__(self, read: Callable[[], list[Metric]]) -> None:
        self._read = read

    def describe(self) -> list[Metric]:
        """Return nothing: registering it must not read them."""
        return []

    def collect(self) -> list[Metric]:
        """Return the figures as they are now."""
        return self._read()


def _own(worker: Worker, slots: int) -> list[Metric]:
    beat_at = time.time() - (time.monotonic() - worker.beat_at)
    return [
        _gauge("worker_agents", "Agents that this worker owns.", worker.agents),
        _gauge("worker_active_agents", "Those that have a thread or wait for one.", worker.active),
        _gauge("worker_slots", "Agents that this worker runs at once.", slots),
        _gauge("worker_heartbeat_timestamp_seconds", "When the database last answered its heartbeat.", beat_at),
    ]


def _connections(database: Database) -> list[Metric]:
    load = database.load()
    repeats = CounterMetricFamily(
        "agentmesh_database_repeats",
        "Calls to the database that were repeated, after a deadlock, a lock's timeout or a lost connection.",
        value=database.repeats,
    )
    return [
        repeats,
        _gauge("pool_connections_in_use", "Connections to the database that a call uses now.", load.in_use),
        _gauge("pool_connections_limit", "Size limit of the pool.", load.most),
        _gauge("pool_waiting_calls", "Calls that wait for a connection.", load.waiting),
    ]


def _mesh(found: MeshFigures | None) -> list[Metric]:
    up = _gauge(
        "database_up",
        "Whether the database answered this scrape; without it there are no mesh_ metrics.",
        found is not None,
    )
    if found is None:
        return [up]
    return [
        up,
        _gauge("mesh_waits", "Waits that are open.", found.waits),
        _gauge("mesh_queued_agents", "Running agents that no worker has taken.", found.queued_agents),
        _gauge(
            "mesh_queued_seconds", "How long the oldest of them has been queued; 0 if none is.", found.queued_seconds
        ),
        _gauge("mesh_unread_mail", "Mail that running agents have not read.", found.unread_mail),
        _gauge("mesh_unread_seconds", "Age of the oldest of it; 0 if there is none.", found.unread_seconds),
        _gauge("mesh_notify_queue_ratio", "Used share of the server's queue of notifications.", found.notify_queue),
    ]


def _gauge(name: str, words: str, value: Any) -> Metric:
    return GaugeMetricFamily(f"agentmesh_{name}", words, value=float(value))
