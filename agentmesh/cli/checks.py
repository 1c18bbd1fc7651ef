"""The checks of ``agentmesh doctor``: one generator per topic, each yielding findings in words."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from agentmesh import __version__
from agentmesh.cli.finding import Finding, Health
from agentmesh.cli.guides_check import guides_checks
from agentmesh.cli.mcp_check import mcp_checks
from agentmesh.cli.models_check import model_checks
from agentmesh.cli.place import PlaceOptions, directory
from agentmesh.cli.render.figures import moment
from agentmesh.cli.telemetry_check import telemetry_checks
from agentmesh.domain.errors import AgentmeshError, NotAPerson
from agentmesh.domain.figures import plural

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.config.settings import Settings

_ECHOES = 5
_ECHO_SECONDS = 5.0
_GIB = 1024**3
_DISK_LOW = 2 * _GIB
_DISK_FULL = _GIB // 4
_BUBBLEWRAP = "Install bubblewrap (apt install bubblewrap); in a container it needs user namespaces."


def all_checks(place: PlaceOptions) -> Iterator[Finding]:
    """Yield every finding as soon as it is made."""
    import platform

    yield Finding(
        Health.OK, "program", f"agentmesh {__version__} on Python {platform.python_version()}, {platform.platform()}"
    )
    try:
        settings = place.settings()
    except NotAPerson:
        raise
    except AgentmeshError as error:
        yield _broken("configuration", error)
        return
    workdir = directory()
    if workdir is None:
        yield Finding(Health.BROKEN, "directory", "the working directory is gone", "cd to a directory that exists.")
        workdir = Path("/")  # where no project is
    tools: list[str] = []
    servers: list[Finding] = []
    for one in settings.each_database():
        try:
            with place.open(one, "doctor", migrate=False) as mesh:
                tools = mesh.tool_names(workdir)
                yield from naming(one, _database_checks(mesh))
                servers = list(mcp_checks(mesh, workdir))
        except NotAPerson:
            raise
        except AgentmeshError as error:
            yield from naming(one, [_broken("server", error)])
    if settings.has_several_databases:
        yield _beginnings(settings)
    if any(one.database_url is None for one in settings.each_database()):
        yield _disk(settings.data_dir)
    yield _sandbox(settings)
    yield from _screen(settings)
    yield from guides_checks(settings, os.environ, workdir, tools)
    yield from servers
    yield from model_checks(settings, os.environ)
    yield from telemetry_checks(settings, os.environ)


def naming(settings: Settings, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings with the name of their database, if it is one of several."""
    name = settings.name_among_several
    for finding in findings:
        yield replace(finding, words=f"{name}: {finding.words}") if name else finding


def _beginnings(settings: Settings) -> Finding:
    """Return in which databases new sessions begin."""
    of_kind: dict[str, list[str]] = {}
    for name, one in settings.databases.items():
        kind = "read-only" if one.read_only else "draining" if one.draining else "" if one.weight else "weight 0"
        of_kind.setdefault(kind, []).append(name)
    begin = of_kind.pop("", [])
    others = "".join(f"; {kind}: {', '.join(names)}" for kind, names in of_kind.items())
    if not begin:
        return Finding(Health.BROKEN, "databases", f"no session can begin{others}", "Change [databases].")
    return Finding(Health.OK, "databases", f"new sessions begin in {', '.join(begin)}{others}")


def _database_checks(mesh: Mesh) -> Iterator[Finding]:
    from agentmesh.store import health, schema

    server = mesh.database.run(health.server, idempotent=True)
    owner = "embedded, this user's own" if mesh.server else "configured by URL"
    words = (
        f"PostgreSQL {server.version}, {owner}; {mesh.database.where}, as role {server.role}; up since "
        f"{moment(server.started_at)}; {server.connections} of {server.max_connections} connections used"
    )
    yield Finding(Health.OK, "server", words)
    if server.read_only and not mesh.settings.is_read_only:
        hint = "Is it a standby? Look at default_transaction_read_only of the database and the role."
        yield Finding(Health.BROKEN, "server", "it refuses changes: no agent can work", hint)
    if mesh.server:
        yield _holders(mesh)
    found = mesh.database.run(schema.state, idempotent=True)
    yield from _schema(mesh, found)
    yield from _notify_queue(mesh)
    yield from _listen(mesh)
    yield from _pooler(mesh)
    if found is schema.SchemaState.CURRENT:
        yield from _reader(mesh)
        yield from _workers(mesh)
        yield from _stuck(mesh)
        yield from _moves(mesh)


def _notify_queue(mesh: Mesh) -> Iterator[Finding]:
    from agentmesh.store import notify_queue

    queue = mesh.database.run(notify_queue.look, idempotent=True)
    if queue.used >= notify_queue.NEARLY_FULL:
        yield Finding(Health.BROKEN, "server", queue.words, queue.hint)


def _holders(mesh: Mesh) -> Finding:
    assert mesh.server is not None  # noqa: S101  asked only then
    status = mesh.server.status()
    shared = "" if status.holders is None else f"; processes that use it, this one included: {status.holders}"
    return Finding(Health.OK, "embedded", f"data in {status.data_dir}, pid {status.pid}{shared}")


def _schema(mesh: Mesh, found: str) -> Iterator[Finding]:
    from agentmesh.store import health, schema

    there = mesh.database.run(schema.installed, idempotent=True)
    if there:
        folder = mesh.server.home if mesh.server else None
        try:
            mesh.database.run(schema.check, mesh.database.where, folder, idempotent=True)
        except AgentmeshError as error:
            yield _broken("schema", error)
            return
    match found:
        case schema.SchemaState.CURRENT:
            yield Finding(Health.OK, "schema", f"at {there}, as this program needs it")
            for words, repair in mesh.database.run(health.switched_off, idempotent=True):
                yield Finding(Health.BROKEN, "schema", words, repair)
        case schema.SchemaState.EMPTY:
            yield Finding(
                Health.NOTE, "schema", "the database is empty; the first command that needs it makes the schema"
            )
        case schema.SchemaState.BEHIND:
            words = f"at {there or 'none'}, older than the {schema.needed()} of this program"
            yield Finding(Health.BROKEN, "schema", words, "Run `agentmesh db upgrade`.")
        case _:
            words = f"at {there}, newer than the {schema.needed()} of this program"
            yield Finding(Health.BROKEN, "schema", words, "Upgrade agentmesh: a newer one already uses this database.")


def _listen(mesh: Mesh) -> Iterator[Finding]:
    """Measure the path that every wake-up takes."""
    import secrets

    from agentmesh.store import status
    from agentmesh.store.pool import GO_AROUND

    channel = f"agentmesh_doctor_{secrets.token_hex(8)}"
    heard: SimpleQueue[str] = SimpleQueue()
    listener = mesh.listener(lambda _channel, payload: heard.put(payload), lambda: None)
    try:
        listener.listen(channel)
        listener.start()
        times = []
        for n in range(_ECHOES):
            started = time.monotonic()
            mesh.database.run(status.publish, [(channel, str(n))])
            heard.get(timeout=_ECHO_SECONDS)
            times.append(time.monotonic() - started)
        yield Finding(
            Health.OK, "notifications", f"LISTEN hears NOTIFY; round trip {statistics.median(times) * 1000:.1f} ms"
        )
    except Empty:
        words = f"a NOTIFY was not heard within {_ECHO_SECONDS:g} s; everything works, but late"
        yield Finding(Health.BROKEN, "notifications", words, f"Is a pooler in between? {GO_AROUND}")
    except AgentmeshError as error:
        yield _broken("notifications", error)
    finally:
        listener.stop()


def _pooler(mesh: Mesh) -> Iterator[Finding]:
    from agentmesh.store import health
    from agentmesh.store.opening import require_one_database
    from agentmesh.store.pool import GO_AROUND

    try:
        require_one_database(mesh.database)
        pooled = health.is_pooled(mesh.database.url)
    except AgentmeshError as error:
        yield _broken("pooler", error)
        return
    if not pooled:
        yield Finding(Health.OK, "pooler", "none in transaction mode in between")
    elif mesh.database.direct_url != mesh.database.url:
        yield Finding(Health.OK, "pooler", "one in transaction mode in between; a direct URL for LISTEN is configured")
    else:
        words = "one in transaction mode in between, and no direct URL: no agent can be woken, no worker can run"
        yield Finding(Health.BROKEN, "pooler", words, GO_AROUND)


def _reader(mesh: Mesh) -> Iterator[Finding]:
    from agentmesh.store import reader

    own = mesh.settings.reader_url
    url = mesh.reader_url()
    try:
        if reader.can_change(url):
            who = "the role behind AGENTMESH_READER_URL" if own else f"the login {reader.READER}"
            words = f"{who} may change rows: `agentmesh sql` is no boundary"
            hint = f"Let it log in as {reader.READER}." if own else "Does a pooler log in as another role?"
            yield Finding(Health.BROKEN, "reader", words, hint)
        else:
            yield Finding(Health.OK, "reader", "the role for `agentmesh sql` logs in, and may change nothing")
    except AgentmeshError as error:
        yield Finding(Health.NOTE, "reader", error.message, error.hint)


def _workers(mesh: Mesh) -> Iterator[Finding]:
    from agentmesh.store import workers

    alive = mesh.database.run(workers.alive, idempotent=True)
    if not alive:
        yield Finding(Health.OK, "workers", "none runs; `agentmesh run` is one itself, other commands start one")
    for one in alive:
        words = f"worker {one['id']} (pid {one['pid']} on {one['host']}, {plural(one['agents'], 'agent')})"
        if one["silent"]:
            words += f", silent since {moment(one['seen_at'])}"
            yield Finding(Health.NOTE, "workers", words, "If it is dead, the next worker that runs frees its agents.")
        else:
            yield Finding(Health.OK, "workers", words)


def _stuck(mesh: Mesh) -> Iterator[Finding]:
    from agentmesh.store import health

    found = mesh.database.run(health.stuck, idempotent=True)
    if not any(one.recent for one in found):
        yield Finding(Health.OK, "agents", "none is stuck")
    for one in found:
        words = f"{one.name} of session {str(one.session_id)[:8]}: {one.problem}: {one.why}"
        if one.recent:
            yield Finding(Health.BROKEN, "agents", words)
        else:
            left = f"{words}; nothing has happened to it since {moment(one.at)}"
            yield Finding(Health.NOTE, "old session", left, f"agentmesh sessions end {one.session_id} ends it.")


def _moves(mesh: Mesh) -> Iterator[Finding]:
    """Say which sessions are between two databases."""
    from agentmesh.app.moving import RESUME
    from agentmesh.store import moves

    for left in mesh.database.run(moves.unfinished, idempotent=True):
        session = f"session {str(left.session_id)[:8]}"
        if left.departed_at is None:
            yield Finding(
                Health.NOTE, "move", f"{session} is to move to {left.destination}; somebody may be at it", RESUME
            )
        else:
            words = f"{session} has departed for {left.destination}, and nobody has told that it arrived"
            yield Finding(Health.BROKEN, "move", words, RESUME)
    for one in mesh.database.run(moves.arrivals, idempotent=True):
        words = f"session {str(one.session_id)[:8]} lies sealed here, on its way from {one.source}"
        yield Finding(Health.NOTE, "move", words, RESUME)


def _sandbox(settings: Settings) -> Finding:
    from agentmesh.app.hidden import hidden_paths
    from agentmesh.tools.wall.walls import Walls

    mode = settings.sandbox.bash
    walls = Walls(settings.sandbox, hidden_paths(settings, os.environ))
    problem = walls.problem()
    if mode == "off":
        words = "off: approved commands run as this user, who can reach the database and this program's keys"
        return Finding(Health.NOTE, "sandbox", words, "Take sandbox.bash out of the configuration to have a wall.")
    if not problem:
        network = "" if settings.sandbox.network else ", without network"
        return Finding(Health.OK, "sandbox", f"{mode}: commands run behind {walls.kind}{network}")
    if mode == "required":
        return Finding(Health.BROKEN, "sandbox", f"required, but {problem}: agents can run no command", _BUBBLEWRAP)
    words = f"none ({problem}): every command is asked about, and runs as this user, who can reach the database"
    return Finding(Health.NOTE, "sandbox", words, _BUBBLEWRAP)


def _screen(settings: Settings) -> Iterator[Finding]:
    """Yield what is wrong with the theme and the keys; Textual, which takes long to import, only if they are set."""
    from agentmesh.config import paths

    try:
        if settings.tui.theme not in ("auto", "dark", "light"):
            from agentmesh.tui.theme import theme_for

            theme_for({}, settings.tui.theme)
        if settings.tui.keys:
            from agentmesh.tui.input.keys import Keymap

            Keymap(settings.tui.keys)
    except AgentmeshError as error:
        yield replace(_broken("screen", error), words=f"{paths.user_config(os.environ)}: {error.message}")


def _disk(folder: Path) -> Finding:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    state = Health.BROKEN if free < _DISK_FULL else Health.NOTE if free < _DISK_LOW else Health.OK
    hint = "" if state is Health.OK else "A full disk stops PostgreSQL: make room, or move it with AGENTMESH_DATA_DIR."
    return Finding(state, "disk", f"{free / _GIB:.1f} GiB free at {there}", hint)


def _broken(about: str, error: AgentmeshError) -> Finding:
    return Finding(Health.BROKEN, about, error.message, error.hint)
