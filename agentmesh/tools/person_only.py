"""Keep programs that an agent's tool starts from acting as a person, whatever they unset or start in between.

Every program that opens a database for a person calls ``open_as_person``; a command that opens none calls
``require_person_there``. Three signs show that a worker is above, the quickest first:

- the variable that every command of an agent gets;
- the guard of the spawner among the processes above;
- a worker of the current database among them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.errors import NotAPerson
from agentmesh.domain.text import one_line
from agentmesh.tools.ancestors import Process, ancestors
from agentmesh.tools.environment import AGENT_VARIABLE

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings
    from agentmesh.store.embedded import EmbeddedServer
    from agentmesh.store.tx import Database
    from agentmesh.store.workers import LocalWorker

_HINT = "An agent cannot allow itself anything: say in your answer what you need, and the user decides."
_GUARD = os.fsencode(os.path.join(*Path(__file__).with_name("spawner.py").parts[-3:]))
"""The end of the path of the spawner's file in every installation: ``agentmesh/tools/spawner.py``."""
_SLACK = 5.0
"""Seconds that a process may seem younger than its row, because the two clocks are read one after the other."""


def open_as_person(
    settings: Settings,
    *,
    role: str,
    what: str,
    environ: Mapping[str, str],
    pool_size: int,
    migrate: bool = True,
) -> tuple[Database, EmbeddedServer | None]:
    """Open the database that the settings name, for a person; raise NotAPerson below a worker.

    If it raises, it leaves nothing open. ``what`` completes the message "only a person may …".
    """
    require_person(settings, what, environ)
    from agentmesh.store.opening import open_database

    database, server = open_database(settings, role=role, migrate=migrate, pool_size=pool_size)
    try:
        # A program that runs a worker may start another one in the background: skip that parent. If the parent is
        # process 1, do not: it might be a command whose guard was killed.
        skip = 1 if role == "worker" and os.getppid() != 1 else 0
        if migrate or _has_schema(database):
            _require_no_worker_above(database, what, skip=skip)
    except BaseException:
        database.close()
        if server:
            server.release()
        raise
    return database, server


def require_person(settings: Settings, what: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raise NotAPerson if this process shows, without a database, that an agent started it."""
    if agent := environ.get(AGENT_VARIABLE):
        raise _not_a_person(what, f"agent {one_line(agent, 40)}")
    # Only for the user's own mesh: tests of a program that uses agentmesh have databases of their own.
    if (guard := _guard_above()) and _is_the_users_own(settings, environ):
        raise _not_a_person(what, f"a tool of an agent (its guard is pid {guard.pid})")


def require_person_there(settings: Settings, what: str) -> None:
    """Raise NotAPerson as ``open_as_person`` does, for a command that opens no database; start no server."""
    require_person(settings, what)
    from agentmesh.store.opening import reach

    url = settings.direct_database_url or settings.database_url
    if not url:
        from agentmesh.store.embedded import EmbeddedServer

        server = EmbeddedServer(settings.data_dir)
        if not server.running():
            return  # then it has no worker
        url = server.url()
    database = reach(url, role="look", pool_size=1)
    try:
        if _has_schema(database):
            _require_no_worker_above(database, what)
    finally:
        database.close()


def _has_schema(database: Database) -> bool:
    from agentmesh.store import schema

    return database.run(schema.revision, idempotent=True) is not None


def _require_no_worker_above(database: Database, what: str, *, skip: int = 0) -> None:
    """Raise NotAPerson if a worker of this database and host is above; ignore the ``skip`` nearest processes."""
    from agentmesh.store import workers

    alive = {one.pid: one for one in database.run(workers.of_host, socket.gethostname(), idempotent=True)}
    for process in islice(ancestors(), skip, None):
        if (worker := alive.get(process.pid)) and _is(process, worker):
            raise _not_a_person(what, f"worker {worker.id} (pid {process.pid})")


def _is(process: Process, worker: LocalWorker) -> bool:
    """Whether this process is the worker, and not a later one that got the pid of a worker that was killed."""
    return worker.is_beating or process.age is None or process.age + _SLACK >= worker.age


def _guard_above() -> Process | None:
    return next((one for one in ancestors() if any(word.endswith(_GUARD) for word in one.command)), None)


def _is_the_users_own(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether these settings name a database of the user's configuration without variables and flags."""
    if settings.databases:
        return True  # only that configuration names several
    from agentmesh.config.settings import load

    without = {name: value for name, value in environ.items() if not name.startswith("AGENTMESH_")}
    return _where(settings) in map(_where, load({}, without, Path.cwd()).each_database())


def _where(settings: Settings) -> str:
    return settings.database_url or str(settings.data_dir.resolve())


def _not_a_person(what: str, above: str) -> NotAPerson:
    return NotAPerson(f"only a person may {what}, and this runs below {above}", hint=_HINT)
