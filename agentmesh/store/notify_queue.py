"""The server's queue of notifications. All its databases share it, so one listener that does not read fills it."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.sql import statement

NEARLY_FULL = 0.5
"""The share of the queue from which on people are told; PostgreSQL warns there too."""


@dataclass(frozen=True, slots=True)
class NotifyQueue:
    """How full the queue is, and which process most probably keeps it from being emptied."""

    used: float
    """The used share of its room, from 0 to 1."""
    pid: int | None
    """The server process to end; None if this role may not see any."""
    whose: str
    """Database, user and program of that process."""

    @property
    def words(self) -> str:
        """The fault, in a sentence without its full stop."""
        held = f": process {self.pid} ({self.whose}) does not take its notifications" if self.pid else ""
        return f"the server's NOTIFY queue is {self.used:.0%} full{held}"

    @property
    def hint(self) -> str:
        """The remedy."""
        if self.pid:
            return f"End that process: select pg_terminate_backend({self.pid});"
        return "As a superuser find the session that has been in a transaction for longest in pg_stat_activity; end it."


def look(conn: Connection) -> NotifyQueue:
    """Return the state of the queue."""
    with conn.cursor(row_factory=class_row(NotifyQueue)) as cursor:
        (found,) = cursor.execute(statement("health.notify_queue")).fetchall()
    return found
