"""Opens the database that the settings name: a server of the user's own, or the embedded one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from agentmesh.config.settings import Settings
from agentmesh.domain.errors import ConfigError
from agentmesh.store import lineage, schema
from agentmesh.store.errors import translated
from agentmesh.store.pool import connect, describe
from agentmesh.store.sizes import POOL_SIZE
from agentmesh.store.tx import Database

if TYPE_CHECKING:
    from agentmesh.store.embedded import EmbeddedServer


def local_files(url: str) -> list[str]:
    """Return the folders of sockets, and the files of passwords and keys, that a database's URL names."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = conninfo_to_dict(url)
    except ProgrammingError:
        return []  # nobody can connect with it either, and the attempt will say so
    hosts = str(given.get("host") or "").split(",")
    return [
        *(host for host in hosts if host.startswith("/")),
        *(str(given[key]) for key in ("passfile", "sslkey") if given.get(key)),
    ]


def read_only(url: str) -> str:
    """Return the URL with the option that makes the server refuse changes; a pooler's server needs it itself."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    options = str(conninfo_to_dict(url).get("options") or "")
    return make_conninfo(url, options=f"{options} -c default_transaction_read_only=on".strip())


def reach(
    url: str,
    direct_url: str | None = None,
    *,
    role: str,
    pool_size: int = POOL_SIZE,
    revive: Callable[[], object] | None = None,
) -> Database:
    """Return a database with one connection; raise a DatabaseError at once, where the pool would try for 15 seconds."""
    with translated(describe(url)):
        first = connect(url, role=role)
    return Database(url, direct_url, role=role, pool_size=pool_size, revive=revive, first=first)


def require_one_database(database: Database) -> None:
    """Raise ConfigError if the way around a pooler leads to another database."""
    if database.direct_url != database.url:
        url = database.direct_url
        with translated(describe(url)), closing(connect(url, role="look")) as direct:
            there = lineage.identity(direct)
        _require_same(database, there)


def _require_same(database: Database, there: str) -> None:
    here = database.run(lineage.identity, idempotent=True)
    if here and there and here != there:
        around = describe(database.direct_url)
        raise ConfigError(
            f"Two URLs lead to two databases: {describe(database.url)}, and around its pooler {around}.",
            hint="AGENTMESH_DIRECT_DATABASE_URL (direct_database_url, direct_url) must name the same database.",
        )


def open_database(
    settings: Settings, *, role: str, migrate: bool = True, pool_size: int = POOL_SIZE
) -> tuple[Database, EmbeddedServer | None]:
    """Connect to the configured database, or start the embedded one, and check that its schema is the program's.

    Raise a DatabaseError if that fails, ConfigError if two URLs lead to two databases. ``migrate=False`` looks neither
    at the schema nor at a second URL. The caller closes the database and releases the server.
    """
    server, direct_url = None, None
    if settings.database_url:
        url, direct_url = settings.database_url, settings.direct_database_url
    else:
        from agentmesh.store.embedded import EmbeddedServer

        server = EmbeddedServer(settings.data_dir)
        url = server.acquire()
    if settings.is_read_only:
        url, direct_url = read_only(url), direct_url and read_only(direct_url)
    try:
        revive = server.revive if server else None
        if migrate:
            direct, folder = direct_url or url, server.home if server else None
            first = schema.connect_ensured(direct, role=role, automatic=server is not None, folder=folder)
            if direct == url:
                return Database(url, direct_url, role=role, pool_size=pool_size, revive=revive, first=first), server
            with closing(first):
                there = lineage.identity(first)
            database = reach(url, direct_url, role=role, pool_size=pool_size, revive=revive)
            try:
                _require_same(database, there)
            except BaseException:
                database.close()
                raise
            return database, server
        return reach(url, direct_url, role=role, pool_size=pool_size, revive=revive), server
    except BaseException:
        if server:
            server.release()
        raise
