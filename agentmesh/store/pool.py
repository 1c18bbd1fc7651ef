"""How this program connects: one place for the names, limits and keepalives of every connection, and the pool.

A connection is autocommit: a commit of the engine is one statement. Through a pooler in transaction mode, settings and
prepared statements of a session would end up on other clients' connections, so we make none there. The limits then come
from the role (``alter role ... set lock_timeout = '5s'``), and a role whose settings give statements another meaning is
refused.
"""

from __future__ import annotations

import os
import re
import select
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ConnStatus
from psycopg.pq.abc import PGconn
from psycopg.rows import RowFactory, TupleRow, tuple_row

from agentmesh.domain.errors import ConfigError, DatabaseError
from agentmesh.store.deadline import BoundedConnection

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

_DEFAULTS: Final = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
"""What a URL may override. A peer that vanished is noticed within 25 s. In seconds; the last one in milliseconds."""

_EACH_SECONDS: Final = "3"
"""``connect_timeout`` for each server of a list. A frozen primary costs this much before its standby is asked."""

_LIMITS: Final = {
    "lock_timeout": "5s",
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "5s",
    "default_transaction_isolation": "read committed",
    "idle_session_timeout": "0",  # a listener is idle most of the time
    "DateStyle": "ISO, MDY",  # times and intervals are read only in these forms
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
    "transform_null_equals": "off",
    "search_path": "pg_catalog",  # every name of ours has its schema
    "plan_cache_mode": "auto",
    "gin_fuzzy_search_limit": "0",
    "jit": "off",  # compiling takes 40 ms for statements that run for one: plans of many small parts look expensive
}

_MEANINGS: Final = (
    "default_transaction_isolation",
    "DateStyle",
    "IntervalStyle",
    "bytea_output",
    "array_nulls",
    "standard_conforming_strings",
    "quote_all_identifiers",
    "transform_null_equals",
    "gin_fuzzy_search_limit",
)
"""The settings of ``_LIMITS`` that every role has unless somebody chose others, and without which results differ."""

_SEVERAL_AT: Final = re.compile(r"postgres(?:ql)?://[^?]*@[^?]*@")

GO_AROUND: Final = (
    "Set AGENTMESH_DIRECT_DATABASE_URL, or direct_url of its [databases.NAME], to a URL that goes to PostgreSQL itself."
    " With --database-url neither counts: name such a URL there."
)

PREPARE_AFTER: Final = 3
"""A statement is prepared after this many executions."""

_RECONNECT_SECONDS: Final = 0.5
"""How long the pool tries by itself. Its pauses would grow to minutes, while ``Database`` asks again each second."""


class KeptConnection(BoundedConnection):
    """A connection that keeps what each call would otherwise make again."""

    def __init__(self, pgconn: PGconn, row_factory: RowFactory[TupleRow] = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self.is_pooled = False
        """Whether it is one of a pool's."""
        self.pooled_again = 0.0
        """When (monotonic) it must go through the pool again; see ``tx``."""
        self.silence = select.poll()
        """Tells whether the server has sent something that nobody asked for."""
        self.silence.register(pgconn.socket, select.POLLIN)


def connection_string(url: str, *, role: str) -> str:
    """Return the URL with our defaults and the name ``agentmesh/<role>/<pid>``, under which psql shows us."""
    given = {key: value for key, value in _parsed(url).items() if value is not None}
    several = "," in str(given.get("host", "")) or "," in str(given.get("hostaddr", ""))
    defaults = {**_DEFAULTS, "connect_timeout": _EACH_SECONDS} if several else _DEFAULTS
    ours = {"client_encoding": "utf8", "application_name": f"agentmesh/{role}/{os.getpid()}"}
    return make_conninfo(**{**defaults, **given, **ours})


def describe(url: str) -> str:
    """Return ``name at host:port or host:port`` for messages, never the password."""
    parts = _parsed(url)
    name, given, ports = (str(parts.get(key) or "") for key in ("dbname", "host", "port"))
    hosts = (given or str(parts.get("hostaddr") or "localhost")).split(",")
    of_each = [ports] * len(hosts) if "," not in ports else ports.split(",")
    places = (":".join(filter(None, place)) for place in zip_longest(hosts, of_each, fillvalue=""))
    return f"{name} at {' or '.join(places)}".lstrip()


def connect(url: str, *, role: str) -> KeptConnection:
    """Return a new autocommit connection of the caller's own, with our limits set."""
    connection = KeptConnection.connect(connection_string(url, role=role), autocommit=True)
    try:
        configure(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def configure(connection: psycopg.Connection) -> bool:
    """Set our limits on a direct connection; if there is a pooler, set nothing and return False.

    A pooler is behind it if the process that runs the statement is not the one that answered the connect. Raise
    DatabaseError if the database cannot hold every text, or if statements mean something else behind that pooler.
    """
    _require_utf8(connection)
    done = connection.execute(
        "select set_config(name, value, false) from unnest(%s::text[], %s::text[]) as limits(name, value)"
        " where pg_backend_pid() = %s",
        [list(_LIMITS), list(_LIMITS.values()), connection.info.backend_pid],
        prepare=False,
    )
    direct = done.rowcount > 0
    connection.prepare_threshold = PREPARE_AFTER if direct else None
    if not direct:
        _require_meanings(connection)
    return direct


def is_direct(connection: psycopg.Connection) -> bool:
    """Return whether ``configure`` found no pooler behind the connection, so that its settings are its own."""
    return connection.prepare_threshold is not None


def shares_its_session(connection: psycopg.Connection, url: str, *, role: str) -> bool:
    """Return whether a pooler gives the connection's server process to others between transactions.

    A second connection holds a server process meanwhile. Either it got the first one's, or the first one has been given
    another and so lost its LISTEN. (Alone, the first one would get the same process again and look all right.)
    """
    connection.execute("listen agentmesh_probe")
    with BoundedConnection.connect(connection_string(url, role=role)) as other:
        if _one(other, "select pg_backend_pid()") == _one(connection, "select pg_backend_pid()"):
            return True
        kept = _one(connection, "select 'agentmesh_probe' = any (array(select pg_listening_channels()))")
    connection.execute("unlisten agentmesh_probe")
    return not kept


def require_own_session(connection: psycopg.Connection, url: str, *, role: str) -> None:
    """Raise DatabaseError if a pooler shares the connection's server process, as ``shares_its_session`` tells."""
    if shares_its_session(connection, url, role=role):
        raise DatabaseError(
            f"The database {describe(url)} is behind a pooler in transaction mode, which loses every LISTEN.",
            hint=GO_AROUND,
        )


def open_pool(url: str, *, role: str, size: int) -> ConnectionPool[KeptConnection]:
    """Open a pool of at most ``size`` connections; it connects in the background, so this never fails or waits."""
    from psycopg_pool import ConnectionPool  # 5 ms, which a command that gets by with one connection need not wait for

    return ConnectionPool(
        connection_string(url, role=role),
        connection_class=KeptConnection,
        kwargs={"autocommit": True},
        configure=_configure_pooled,
        min_size=1,
        max_size=size,
        max_idle=60.0,
        reconnect_timeout=_RECONNECT_SECONDS,
        num_workers=2,
        name=f"agentmesh-{role}",
        open=True,
    )


def is_alive(connection: KeptConnection) -> bool:
    """Return whether an idle connection still stands, without a round trip.

    The server sends an idle session nothing but its end: if there is anything to read on the socket, it is over.
    """
    if connection.pgconn.status != ConnStatus.OK:
        return False
    if not connection.silence.poll(0):
        return True
    try:
        connection.execute("")
    except psycopg.OperationalError:
        return False
    return True


def _require_utf8(connection: psycopg.Connection) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        raise DatabaseError(
            f"The database {connection.info.dbname} has the encoding {encoding}; agentmesh needs UTF8.",
            hint="Use another database: createdb --template template0 --encoding UTF8 NAME",
        )


def _require_meanings(connection: psycopg.Connection) -> None:
    """Raise DatabaseError if the settings of the role, which we cannot change behind a pooler, change any meaning.

    The first part of ``DateStyle`` decides: the second is the order of day and month in dates that we never write.
    """
    wanted = [_LIMITS[name] for name in _MEANINGS]
    other = connection.execute(
        "select format('%%s = %%L', name, current_setting(name)),"
        " format('alter role %%I set %%s = %%L', session_user, name, value)"
        " from unnest(%s::text[], %s::text[]) as settings(name, value)"
        " where split_part(current_setting(name), ',', 1) <> split_part(value, ',', 1)",
        [list(_MEANINGS), wanted],
        prepare=False,
    ).fetchall()
    if other:
        raise DatabaseError(
            f"The database {connection.info.dbname} is behind a pooler, where agentmesh cannot change the settings of "
            f"its role: {', '.join(found for found, _ in other)}.",
            hint=f"Run in it: {'; '.join(mend for _, mend in other)}. Then let the pooler connect anew (PgBouncer: "
            "RECONNECT).",
        )


def _configure_pooled(connection: KeptConnection) -> None:
    connection.is_pooled = True
    configure(connection)


def _one(connection: psycopg.Connection, query: LiteralString) -> Any:
    row = connection.execute(query, prepare=False).fetchone()
    return row and row[0]


def _parsed(url: str) -> dict[str, Any]:
    if _SEVERAL_AT.match(url):
        # libpq would take a part of the password for a host, or for the name of the database, and messages name those.
        raise ConfigError(
            "The database URL has more than one @.", hint="Write an @ of the password as %40, and a / as %2F."
        )
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Not chained: libpq quotes what it could not read, and that may be the password.
        raise ConfigError(
            "The database URL is not valid.", hint="It looks like postgresql://user:password@host:5432/name."
        ) from None
