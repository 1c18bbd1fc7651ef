"""Which server is the database: what this process remembers of it, so that it never serves an old one again.

PostgreSQL gives each cluster a number, the system identifier, and each promotion of a standby begins a new timeline of
it. A primary that was replaced and comes back still has the older timeline. It takes connections and writes like the
right one, and every agent exists on both.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from agentmesh.domain.errors import ServerReplaced

_PLACE: Final = ("service", "host", "hostaddr", "port", "dbname")
"""What of a URL says where a database is."""

_LISTED: Final = ("host", "hostaddr", "port")
"""What may be a list, with one entry for each server."""

_FOR_WRITES: Final = ("read-write", "primary")
"""What ``target_session_attrs`` says if only one server of a list is meant. Any other list is left to libpq's rules."""

_READ: Final = (
    "select system_identifier, case when not pg_catalog.pg_is_in_recovery() then"
    " ('x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int end"
    " from pg_catalog.pg_control_system()"
)

_HINT: Final = (
    "Stop the old server for good, or make it a standby of the new one. If it is meant to be the database from now on"
    " (a restored backup, an upgrade), start this program again."
)

Server = tuple[tuple[str, str], ...]
"""One server of a list, as parameters of libpq."""


class Lineage(NamedTuple):
    """Whose data a server has."""

    system: int
    """The system identifier, which a cluster gets when it is made; its standbys have the same."""
    timeline: int
    """How often a standby of the cluster was promoted, counted from 1."""


class Served:
    """What this process remembers of the database at one place.

    All threads use it, and each change is one assignment.
    """

    def __init__(self) -> None:
        self.newest: Lineage | None = None
        """The newest lineage that the process has met there."""
        self._taken: Server = ()
        """The server of a list that was taken last."""

    def is_old(self, lineage: Lineage | None) -> bool:
        """Return whether the process has met a newer primary than the one with this lineage."""
        newest = self.newest
        return newest is not None and lineage is not None and lineage.timeline < newest.timeline

    def admit(self, connection: psycopg.Connection[Any]) -> Lineage | None:
        """Return the lineage of a new connection's server and remember it; raise ServerReplaced for an old server."""
        found, known = read(connection), self.newest
        if found is None or found == known:
            return found
        if known is not None:
            name = f"The server at {_address(connection.info)} is not the one that has the database"
            name = f"{name} {connection.info.dbname}"
            if found.system != known.system:
                raise ServerReplaced(
                    f"{name}: its system identifier is {found.system}, and this program has used {known.system}.",
                    hint=_HINT,
                )
            if found.timeline < known.timeline:
                raise ServerReplaced(
                    f"{name} any more: it is an old primary of timeline {found.timeline}, and a standby was promoted to"
                    f" timeline {known.timeline}.",
                    hint=_HINT,
                )
        self.newest = found
        return found

    def servers(self, conninfo: str) -> list[tuple[Server, str]]:
        """Return each server of a URL that asks for the one that takes writes, with a URL of its own.

        The one that was taken last comes first: a frozen server before it would cost its whole timeout each time.
        """
        given = conninfo_to_dict(conninfo)
        lists = {key: str(given[key]).split(",") for key in _LISTED if given.get(key)}
        count = max(map(len, lists.values()), default=1)
        if count == 1 or given.get("target_session_attrs") not in _FOR_WRITES:
            return [((), conninfo)]
        if any(len(each) not in (1, count) for each in lists.values()):
            return [((), conninfo)]  # libpq says what is wrong
        listed: list[Server] = [tuple((key, each[n % len(each)]) for key, each in lists.items()) for n in range(count)]
        listed.sort(key=lambda server: server != self._taken)
        return [(server, make_conninfo(conninfo, **dict(server))) for server in listed]

    def took(self, server: Server) -> None:
        """Remember which server of a list was taken."""
        self._taken = server


_places: Final[dict[tuple[str, ...], Served]] = {}


def served(conninfo: str) -> Served:
    """Return the remembered state of the place that a URL names."""
    given = conninfo_to_dict(conninfo)
    return _places.setdefault(tuple(str(given.get(key) or "") for key in _PLACE), Served())


def forget(conninfo: str) -> None:
    """Let the next server at that place be the database: an embedded server is defined by its folder."""
    served(conninfo).newest = None


def read(connection: psycopg.Connection[Any]) -> Lineage | None:
    """Return the lineage of a new connection's server; None for a standby, or where the server does not say.

    Some managed services have no such functions, or no such log.
    """
    try:
        system, timeline = connection.execute(_READ, prepare=False).fetchone() or (None, None)
    except psycopg.Error:
        if connection.closed:
            raise
        system = timeline = None
    if not connection.autocommit:
        connection.rollback()
    return None if system is None or timeline is None else Lineage(system, timeline)


def identity(connection: psycopg.Connection[Any]) -> str:
    """Return which database this is, alike for a primary and its standbys; empty if the server does not say."""
    try:
        row = connection.execute(
            "select system_identifier::text || '/' || pg_catalog.current_database() from pg_catalog.pg_control_system()"
        ).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return ""
    return str(row[0]) if row else ""


def _address(info: psycopg.ConnectionInfo) -> str:
    return f"{info.host or info.hostaddr}:{info.port}"
