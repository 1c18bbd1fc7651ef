"""Everything in a session, read page by page from one snapshot, for exports and time lines. It changes nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from agentmesh.domain.errors import Timeout, UnknownSession
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Row
from agentmesh.sql import statement
from agentmesh.store import images, mailbox
from agentmesh.store.deadline import ANSWER_SECONDS, answering_within

_LONGEST: Final = 60.0
"""Time limit of one statement, in seconds."""
_PAGE: Final = 64
"""How many rows are fetched at once; a row may be hundreds of kilobytes long."""

_OF_SESSION: Final = MappingProxyType(
    {
        "settings": "export.settings",
        "agent": "export.agents",
        "request": "export.requests",
        "cost": "export.costs",
        "image": "export.images",
        "workspace": "export.workspaces",
        "snapshot": "export.snapshots",
        "merge": "export.merges",
        "form": "export.forms",
        "batch": "export.batches",
        "batch_item": "export.batch_items",
        "todo": "export.todos",
        "process": "export.processes",
        "timer": "export.timers",
    }
)
_OF_AGENT: Final = MappingProxyType(
    {
        "transcript": "export.transcript",
        "tool_call": "export.tool_calls",
        "task": "export.tasks",
        "model_call": "export.model_calls",
        "mail": "export.mail",
        "unread": "export.unread",
    }
)

Fields = dict[str, Any]
"""A row by its columns."""


class SessionSnapshot:
    """A session at one instant. It belongs to the thread and the transaction in which it was taken."""

    def __init__(self, conn: Connection, session: SessionId, seconds: float) -> None:
        self.conn = conn
        self.session = session
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def head(self) -> Fields:
        """Return the session's own row; raise UnknownSession."""
        with self.conn.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(statement("export.session"), {"session": self.session}).fetchone()
        if found is None:
            raise UnknownSession(f"there is no session {self.session}", hint="agentmesh sessions lists them.")
        return found

    def of_session(self, what: str) -> Iterator[Fields]:
        """Yield the session's rows of a type that is not one agent's: ``request``, ``todo``, ``timer``, ..."""
        return self._rows(_OF_SESSION[what], {"session": self.session})

    def of_agent(self, what: str, agent: AgentId) -> Iterator[Fields]:
        """Yield an agent's transcript, tool_call, task, model_call, mail or unread rows."""
        return self._rows(_OF_AGENT[what], {"agent": agent})

    def reporters(self, row: Row) -> Collection[UUID]:
        """Return the senders whose automatic reports were taken by the wait that this row is the result of."""
        return mailbox.reporters(self.conn, [row]).get((row.agent_id, row.seq), ())

    def image(self, digest: str) -> bytes | None:
        """Return the bytes of an image of the session, None if it has none such."""
        return images.load(self.conn, self.session, [digest]).get(digest)

    def _rows(self, name: str, values: Mapping[str, Any]) -> Iterator[Fields]:
        with self.conn.cursor(name="export", row_factory=dict_row) as cursor:
            cursor.itersize = _PAGE
            cursor.execute(statement(name), values)
            for row in cursor:
                self.keep_time()
                yield row

    def keep_time(self) -> None:
        """Raise Timeout if the snapshot was open for too long: meanwhile, dead rows cannot be cleared away."""
        if time.monotonic() > self._deadline:
            raise Timeout(
                f"reading session {self.session} was not done within {self._seconds:g} s",
                hint="--timeout gives it longer.",
            )


@contextmanager
def snapshot(conn: Connection, session: SessionId, seconds: float) -> Iterator[SessionSnapshot]:
    """Lend a snapshot of the session, for at most this many seconds."""
    with answering_within(conn, _LONGEST + ANSWER_SECONDS), conn.transaction():
        conn.execute("set transaction isolation level repeatable read, read only")
        conn.execute(
            "select set_config('jit', 'off', true), set_config('statement_timeout', '60s', true),"
            " set_config('idle_in_transaction_session_timeout', '60s', true)"
        )
        yield SessionSnapshot(conn, session, seconds)
