"""Facts about the database for ``agentmesh doctor``; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.sql import statement
from agentmesh.store.deadline import BoundedConnection
from agentmesh.store.errors import translated
from agentmesh.store.pool import (
    configure,
    connect,
    connection_string,
    describe,
    require_own_session,
    shares_its_session,
)


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server as this connection sees it."""

    version: str
    database: str
    role: str
    started_at: datetime
    max_connections: int
    connections: int
    bytes: int
    """Size of the database."""
    read_only: bool
    """Whether it refuses changes: a standby, or a default of the database or the role."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Something that looks wrong (``v_stuck``)."""

    name: str
    """The agent's name."""
    session_id: UUID
    problem: str
    why: str
    at: datetime
    """When something last happened to the agent."""
    recent: bool
    """Whether that is less than a day ago."""


@contextmanager
def look(url: str) -> Iterator[Connection]:
    """Lend a new connection to this database; raise DatabaseUnreachable."""
    with translated(describe(url)), connect(url, role="doctor") as connection:
        yield connection


def server(conn: Connection) -> Server:
    """Return facts about the server."""
    with conn.cursor(row_factory=class_row(Server)) as cursor:
        (found,) = cursor.execute(statement("health.server")).fetchall()
    return found


def stuck(conn: Connection) -> list[Stuck]:
    """Return rows that look wrong, at most 20; empty if all is well."""
    with conn.cursor(row_factory=class_row(Stuck)) as cursor:
        return cursor.execute(statement("health.stuck")).fetchall()


def switched_off(conn: Connection) -> list[tuple[str, str]]:
    """Return which triggers and indexes of ours do nothing, each with what repairs it, and who may."""
    return conn.execute(statement("health.switched_off")).fetchall()


def require_listen(url: str) -> None:
    """Raise DatabaseError if nothing can be heard through this URL: no worker can run on it."""
    there = connection_string(url, role="doctor")
    with translated(describe(url)), BoundedConnection.connect(there, autocommit=True) as connection:
        if not configure(connection):
            require_own_session(connection, url, role="doctor")


def is_pooled(url: str) -> bool:
    """Return whether a pooler in transaction mode stands between this URL and the server."""
    with look(url) as connection:
        return shares_its_session(connection, url, role="doctor")
