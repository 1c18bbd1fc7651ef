"""Make a worker from the parts of a mesh: its models, tools, rules, and the database."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.app.model_client import ModelClient
from agentmesh.app.models import DEMO, ConfiguredModels
from agentmesh.engine.engine import Engine
from agentmesh.engine.feed import Feed
from agentmesh.engine.tool import Effect
from agentmesh.engine.worker import Failure, Worker
from agentmesh.store import sessions, workers
from agentmesh.store.link import Pulse
from agentmesh.telemetry import observer
from agentmesh.telemetry.both import Both
from agentmesh.tools.compact import rewording
from agentmesh.tools.gate import ToolGate
from agentmesh.tools.mcp.tool import tool_of
from agentmesh.tools.starts import starts
from agentmesh.workspace.retention import Retention

if TYPE_CHECKING:
    from agentmesh.app.mesh import Mesh
    from agentmesh.domain.ids import SessionId
    from agentmesh.engine.observer import Observer
    from agentmesh.telemetry.metrics import WorkerMetrics


def make_worker(
    mesh: Mesh,
    *,
    session: SessionId | None = None,
    serves_any: bool = False,
    concurrency: int | None = None,
    on_event: Callable[[str], None] = lambda _: None,
    metrics: WorkerMetrics | None = None,
    client: ModelClient | None = None,
    on_failure: Callable[[Failure], None] = lambda _: None,
) -> Worker:
    """Return a worker, not started; it stops when the mesh closes. ``metrics`` report it from now on.

    It asks its models through ``client``, which the caller closes after it, or by default through one of its own.

    A project's file applies only to the sessions of its directory. Its limits of an answer's length apply only in a
    worker for one session.
    """
    client = client or _own_client(mesh, session)
    observing = _observer(mesh, client, metrics)
    identity = workers.Identity(
        host=mesh.place.host,
        os_user=mesh.place.os_user,
        pid=os.getpid(),
        concurrency=concurrency or mesh.settings.concurrency,
        providers=(*client.providers, DEMO),
        serves_any=serves_any,
        session=session,
        endpoints=mesh.models.endpoints(),
        offers=mesh.offers,
    )
    made = Worker(
        _engine(mesh, client, observing),
        identity,
        mesh.listener if metrics is None else partial(mesh.listener, pulse=Pulse(told=metrics.counts.echoed)),
        on_event,
        heed=client.news.share(mesh.database),
        tend=tending(mesh, session),
        on_failure=on_failure,
    )
    if metrics is not None:
        metrics.watch(made, mesh.database, identity.concurrency)
    mesh.on_close(observing.close)
    mesh.on_close(made.stop)
    return made


def _own_client(mesh: Mesh, session: SessionId | None) -> ModelClient:
    where = None if session is None else Path(mesh.database.run(sessions.get, session, idempotent=True).workdir)
    providers = ConfiguredModels(mesh.projects.of(where), mesh.environ).providers()
    client = ModelClient(mesh.settings, providers, mesh.place)
    mesh.on_close(client.close)
    return client


def _observer(mesh: Mesh, client: ModelClient, metrics: WorkerMetrics | None) -> Observer:
    observing = observer(mesh.environ)
    if metrics is None:
        return observing
    metrics.counts.known_tools = mesh.tools().keys() - mesh.own_tools.keys()
    metrics.counts.providers = {*client.providers, DEMO}
    return Both(observing, metrics.counts)


def _engine(mesh: Mesh, client: ModelClient, observing: Observer) -> Engine:
    projects = mesh.projects
    readers = (name for name, tool in mesh.own_tools.items() if tool.effect is Effect.READ)
    return Engine(
        mesh.database,
        client.models,
        mesh.tools(),
        ToolGate(readers, mesh.walls, partial(starts, mesh.delegation())),
        Feed(mesh.database),
        lambda where: projects.of(where).limits.tool_output_bytes,
        lambda where: projects.of(where).limits.task_silence,
        mesh.settings.compact_at,
        foreign=partial(tool_of, hub=mesh.mcp),  # create the hub now, so that it closes after the worker
        rewording=rewording,
        observer=observing,
        workspaces=mesh.workspaces,
        prefix_gate=mesh.settings.model_calls.prefix_gate,
    )


def tending(mesh: Mesh, session: SessionId | None) -> Callable[[], None]:
    """Return the work of a worker at each tick; if it serves more than one session, it also erases expired ones."""
    age, tend = mesh.settings.retention.seconds, mesh.processes.tend
    if age is None or session is not None:
        return tend
    retention = Retention(mesh.workspaces, age)
    mesh.on_close(retention.stop)

    def tend_and_prune() -> None:
        tend()
        retention.tick()

    return tend_and_prune
