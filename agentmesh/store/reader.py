"""Queries that a person writes, run by a role that can change nothing.

The role is the boundary of what can be read: it has SELECT on the views, and no other right. But PostgreSQL lets every
role do a few other things: notify, make large objects, change its own password. So a query is one statement in the
extended protocol, in a read-only transaction that is always rolled back, on a connection that is closed after it. One
statement can end that transaction or be something else, never both.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import TextLoader

from agentmesh.domain.errors import ConfigError, DatabaseError, ReaderMissing, Timeout
from agentmesh.domain.text import one_line, printable, storable
from agentmesh.sql import statement
from agentmesh.store.call import scalar
from agentmesh.store.deadline import ANSWER_SECONDS
from agentmesh.store.errors import domain_error, is_connection_failure
from agentmesh.store.pool import KeptConnection, connect, describe

READER: Final = "agentmesh_reader"
_VIEWS: Final = (
    "v_agents, v_mail, v_transcript, v_waits, v_cost, v_budgets, v_timeline, v_stuck, v_requests, "
    "v_sessions, v_batch_items, v_batches, v_changes, v_conflicts, v_forms, v_images, v_limits, "
    "v_merges, v_processes, v_tasks, v_timers, v_todos, v_workspaces"
)
_ADVICE: Final = MappingProxyType(
    {
        "42601": "Give one statement of SQL, nothing after a semicolon.",
        "42P01": f"The views: {_VIEWS}. Where the reader sees none, `agentmesh db upgrade` lets it.",
        "25006": f"The reader may read the views and nothing else: {_VIEWS}.",
        "42501": f"The reader may read the views and nothing else: {_VIEWS}.",
        "42883": f"The reader may read the views and nothing else: {_VIEWS}.",
    }
)
"""What to do about an SQLSTATE if PostgreSQL gives no hint itself."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What a query returned, with each value as PostgreSQL writes it; None is NULL."""

    columns: list[str]
    types: list[int]
    """The OID of each column's type."""
    rows: list[tuple[str | None, ...]]


def reader_url(url: str) -> str:
    """Return the URL with the reader as user, and without the password, which is another role's."""
    parts = _parts(url)
    parts.pop("password", None)
    # All is in the query: there, a list of hosts or a socket's folder needs no form of its own.
    return f"postgresql:///?{urlencode({**parts, 'user': READER}, quote_via=quote)}"


def query(url: str, text: str, *, seconds: float = 15.0) -> QueryResult:
    """Run one statement with the schema agentmesh in the search path.

    Raise DatabaseError if something is wrong with it, and Timeout if it was not done after ``seconds``.
    """
    with _connected(url) as connection:
        try:
            return _answer(connection, text, seconds)
        except psycopg.errors.QueryCanceled as error:
            hint = "`agentmesh sql --timeout` gives it longer."
            raise Timeout(f"the query was not done after {seconds:g} s", hint=hint) from error
        except psycopg.Error as error:
            if is_connection_failure(error):
                raise domain_error(error, describe(url)) from error
            raise _complaint(error) from error


def can_change(url: str) -> bool:
    """Return whether the role of this URL may change rows of ours: then it is no reader."""
    with _connected(url) as connection:
        return scalar(connection, statement("health.can_change"), {}, bool)


def psql_call(url: str) -> tuple[str, dict[str, str]]:
    """Return the connection string for psql and the environment that it needs, which holds the password."""
    parts = _parts(url)
    environ = {"PGOPTIONS": "-c search_path=agentmesh -c default_transaction_read_only=on"}
    if password := parts.pop("password", None):
        environ["PGPASSWORD"] = password
    return make_conninfo(**parts), environ


def _parts(url: str) -> dict[str, str]:
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # Not chained: libpq quotes what it could not read, and that may be the password.
        raise ConfigError("The reader's URL is not valid.", hint="Look at AGENTMESH_READER_URL.") from None
    return {key: str(value) for key, value in parts.items() if value is not None}


def _connected(url: str) -> KeptConnection:
    try:
        return connect(url, role="sql")
    except psycopg.OperationalError as error:
        raise ReaderMissing(
            f"The database {describe(url)} does not let the reader in: {one_line(str(error), 300)}",
            hint=f"It needs a role {READER} that may log in (`agentmesh db upgrade` makes it, or prints how), "
            "or a URL of its own in AGENTMESH_READER_URL.",
        ) from error


def _answer(connection: KeptConnection, text: str, seconds: float) -> QueryResult:
    connection.execute("begin read only")
    connection.execute("select set_config('search_path', 'agentmesh', false)")
    connection.execute("reset timezone")  # people see times as psql shows them
    connection.execute("select set_config('statement_timeout', %s, false)", [f"{round(seconds * 1000)}ms"])
    connection.answer_seconds = seconds + ANSWER_SECONDS
    with connection.cursor() as cursor:
        for known in connection.adapters.types:
            for oid in filter(None, (known.oid, known.array_oid)):
                cursor.adapters.register_loader(oid, TextLoader)
        # stream() uses the extended protocol, which takes one statement; execute() would take several. The text is a
        # person's, and the role is its boundary.
        rows = list(cursor.stream(storable(text)))
        described = cursor.description or []
    # NOTIFY is only sent at a commit; PostgreSQL 15 lets a read-only transaction make a large object.
    connection.execute("rollback")
    return QueryResult([column.name for column in described], [column.type_code for column in described], rows)


def _complaint(error: psycopg.Error) -> DatabaseError:
    if error.sqlstate is None:  # psycopg's own error: PostgreSQL ran the statement, and it gave no rows
        return DatabaseError("This statement returns no rows.", hint="The reader can ask: select, show, explain.")
    said = printable(error.diag.message_primary or str(error)).rstrip()
    hint = printable(error.diag.message_hint or "") or _ADVICE.get(error.sqlstate or "", "")
    return DatabaseError(f"PostgreSQL says: {said}", hint=hint)
