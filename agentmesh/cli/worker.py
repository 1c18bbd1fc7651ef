"""``agentmesh worker``: run agents in the foreground."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack, nullcontext
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import click

from agentmesh.app import starting
from agentmesh.app.served_databases import ServedDatabases
from agentmesh.cli.metrics import serving
from agentmesh.cli.options import place_options
from agentmesh.cli.parameter_types import NAMED, Number
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.stopping import Stop, stoppable
from agentmesh.cli.talk import complain, say, write_aside
from agentmesh.domain.errors import ConfigError, DatabaseError, DatabaseUnreachable, UsageError
from agentmesh.domain.figures import plural
from agentmesh.domain.log import logger
from agentmesh.store.sizes import POOL_SIZE
from agentmesh.telemetry.record_ids import EVENT
from agentmesh.tools.environment import conceal_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmesh.config.settings import Settings
    from agentmesh.telemetry.metrics import WorkerMetrics

LOG = logger(__name__)

Started = TypeVar("Started")

_TICK = 1.0
_AWAY = 10.0
"""A lingering worker ends if the database is away ten times as long as it lingers, and at least this many seconds."""


@click.command()
@click.option(
    "--any", "serves_any", is_flag=True, help="Include sessions of other hosts and users (containers, shared disks)."
)
@click.option("--concurrency", type=click.IntRange(1, 1000), metavar="N", help="Model calls and tools at once.")
@click.option(
    "--linger",
    type=Number(min=0),
    metavar="SECONDS",
    help="End when nothing ran, no TUI was open, no process ran in the background and no timer was pending for this "
    "long, or the database was away ten times as long.",
)
@click.option(
    "--starting-lock", type=click.IntRange(min=3), hidden=True, help="Descriptor to close when it is registered."
)
@click.option(
    "--metrics",
    "metrics_at",
    type=NAMED,
    metavar="[HOST:]PORT",
    help="Serve metrics for Prometheus there; HOST is 127.0.0.1 by default, PORT 0 a free one.",
)
@click.option("--check", is_flag=True, help="Run none: report whether one of this host is at work; exit code 1 if not.")
@place_options(session_help="Only agents of this session.", logs=True)
def worker(
    *,
    serves_any: bool,
    concurrency: int | None,
    linger: float | None,
    starting_lock: int | None,
    metrics_at: str | None,
    check: bool,
    place: PlaceOptions,
) -> int | None:
    """Run agents of this host and user until Ctrl+C or SIGTERM, which hand them over to other workers.

    Also hands over, and ends with exit code 4, when the schema is upgraded to a version newer than this program.
    """
    if check:
        return _check(place.settings_without_mesh())
    conceal_process()
    write_aside()
    if starting_lock is not None:
        os.set_inheritable(starting_lock, False)  # keep it from the programs that this worker runs
    # Without the project's file: this directory's does not apply to sessions of other directories.
    settings = place.settings(of_project=False, concurrency=concurrency)
    if metrics_at is not None and settings.has_several_databases and place.session is None:
        raise UsageError("Metrics are those of one database.", hint="--database NAME says which.")
    with nullcontext() if metrics_at is None else serving(metrics_at) as metrics:
        _work(
            place,
            settings,
            serves_any=serves_any,
            concurrency=concurrency,
            linger=linger,
            starting_lock=starting_lock,
            metrics=metrics,
        )
    return None


def _work(
    place: PlaceOptions,
    settings: Settings,
    *,
    serves_any: bool,
    concurrency: int | None,
    linger: float | None,
    starting_lock: int | None,
    metrics: WorkerMetrics | None,
) -> None:
    """Run agents until a signal or a failure ends it."""
    from agentmesh.app.worker import make_worker
    from agentmesh.cli.logs import on_stderr

    wakes: SimpleQueue[None] = SimpleQueue()
    tell = partial(_tell, aloud=not place.verbose and not on_stderr(settings))
    how: dict[str, Any] = {"serves_any": serves_any, "concurrency": concurrency, "on_event": tell, "metrics": metrics}

    def start(stack: ExitStack) -> tuple[ServedDatabases, Stop]:
        databases = None if place.session else place.databases(settings, "worker", pool_size=POOL_SIZE)
        if databases is None:
            mesh = stack.enter_context(place.mesh_of(settings, "worker", pool_size=POOL_SIZE))
            session = place.find_session(mesh).id if place.session else None
            served = ServedDatabases.of_one(mesh, make_worker(mesh, session=session, **how))
        else:
            served = ServedDatabases.of_several(stack.enter_context(databases), tell, how)
        stop = stack.enter_context(stoppable(lambda: wakes.put(None)))
        served.start()
        return served, stop

    with ExitStack() as stack:
        served, stop = _started(start, stack, 0.0 if linger is None else starting.PATIENCE, tell)
        if starting_lock is not None:
            os.close(starting_lock)  # the worker is registered: processes that waited for that look again
        seen = time.monotonic()
        while not stop.asked and not served.failed:
            if linger is not None and served.idle_since is not None:
                seen = time.monotonic() if served.are_needed() else seen
                if _has_lingered(served, seen, linger):  # checked again: the look may have waited for the database
                    tell(f"ended: there was nothing to do for {linger:g} s")
                    break
            if linger is not None and time.monotonic() - served.beat_at >= _AWAY * max(linger, 1):
                tell("ended: the database has been away for too long")
                break
            try:
                wakes.get(timeout=_TICK)
            except Empty:
                served.join_again()
        served.stop()
    if served.failed:
        raise served.failed


def _started(
    start: Callable[[ExitStack], Started], stack: ExitStack, patience: float, tell: Callable[[str], None]
) -> Started:
    """Return the result of ``start``, and leave to the stack whatever it opened.

    Try a database that is away again for ``patience`` seconds, because nobody sees a background worker end.
    """
    deadline, told = time.monotonic() + patience, ""
    while True:
        with ExitStack() as opened:
            try:
                started = start(opened)
            except DatabaseUnreachable as error:
                if time.monotonic() >= deadline:
                    raise
                if error.message != told:
                    told = error.message
                    tell(f"tries again for {deadline - time.monotonic():.0f} s: {told}")
            else:
                stack.push(opened.pop_all())
                return started
        time.sleep(_TICK)


def _check(settings: Settings) -> int:
    """Print for each database whether a worker of this host beats in it and leaves no agent alone; starts nothing."""
    checked: dict[str, str] = {}
    if not settings.has_several_databases:
        return _check_one(settings, "", checked)
    results = []
    for name, one in settings.databases.items():
        if not one.read_only:
            try:
                results.append(_check_one(settings.of_database(name), name, checked))
            except ConfigError as twice:
                complain(twice.message, twice.hint)
            except DatabaseError as error:
                say(f"{name}: {error.message}")
                results.append(1)
    return max(results, default=1)


def _check_one(settings: Settings, name: str, checked: dict[str, str]) -> int:
    """Check one database, unless it is among those ``checked`` under another name: then raise ConfigError."""
    from agentmesh.app.meshes import same_database
    from agentmesh.store import health, lineage, workers
    from agentmesh.store.embedded import EmbeddedServer

    named = f"{name}: " if name else ""
    url = settings.database_url
    if not url:
        server = EmbeddedServer(settings.data_dir)
        if not server.running():
            say(f"{named}No worker runs here: the embedded server does not run.")
            return 1
        url = server.url()
    host = socket.gethostname()
    with health.look(url) as connection:
        identity = lineage.identity(connection)
        if identity in checked:
            raise same_database(checked[identity], name)
        if identity:
            checked[identity] = name
        count = workers.beating(connection, host)
        left = workers.left_alone(connection, host) if count else 0
    beating = f"{plural(count, 'worker')} of {host} at work"
    if left:
        say(f"{named}{beating}, but {plural(left, 'agent')} that it could run is left: agentmesh doctor.")
    else:
        say(f"{named}{beating}." if count else f"{named}No worker of {host} is at work.")
    return 0 if count and not left else 1


def _has_lingered(served: ServedDatabases, seen: float, seconds: float) -> bool:
    since = served.idle_since
    return since is not None and time.monotonic() - max(since, seen) >= seconds


def _tell(words: str, *, aloud: bool) -> None:
    LOG.info("%s", words, extra={EVENT: "worker"})
    if aloud:
        say(f"{time.strftime('%H:%M:%S')} {words}")
