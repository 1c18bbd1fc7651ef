"""The place where a PostgreSQL error becomes a domain error: by SQLSTATE, not by the text of its message.

libpq gives no SQLSTATE for a connection that the server refused. Only there is the text read, and only to give advice.

A verb that refuses raises an SQLSTATE of class AM, which is the ``code`` of a class in ``agentmesh.domain.errors``. Its
message and HINT are the sentence and the advice. Every other error comes from the database itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

import psycopg
from psycopg.pq import ConnStatus

from agentmesh.domain import errors
from agentmesh.domain.text import one_line, printable

_FOREIGN_WIDTH = 1000
"""How many characters of PostgreSQL's own words a message repeats."""

_AROUND = re.compile(r"connection (?:failed|is bad): |\n\tIs the server running[^\n]*")
"""What psycopg and libpq write around the reason of a failed connection; our advice asks the same."""

_EACH_HOST = re.compile(r"^- host: .*?, hostaddr: (?:None|'.*?'): ", re.MULTILINE)
"""What stands before each reason of psycopg's list, if several hosts failed."""

_CONNECTION_STATES = ("08", "25P03", "25P04", "28", "3D000", "57P")
"""SQLSTATEs, or their beginnings, that leave no connection: refused, ended by a time limit, shut down."""

_REFUSALS = MappingProxyType(
    {kind.code: kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.Refused)}
)

_UNREACHABLE_HINT = (
    "Check that PostgreSQL runs there and that the URL is right (with TLS sslmode and sslrootcert): `agentmesh doctor`."
)
_URL = "AGENTMESH_DATABASE_URL, or database_url or [databases] of the configuration"
_PASSWORD_HINT = f"Put the role's password into the URL ({_URL}), PGPASSWORD or ~/.pgpass."
_LOGIN_HINT = f"Check the role, its password and the database's name in the URL: {_URL}."
_LOGIN_WORDS = re.compile(r"FATAL: .*(?:does not exist|authentication failed)")
"""What servers write in English where the role, its password or the database is wrong."""
_FULL = "53300"
_FULL_WORDS = re.compile("too many (?:clients|connections)|connection slots are reserved|no more connections allowed")
"""What servers and PgBouncer write in English where no connection is free."""
_FULL_HINT = (
    "Close other clients, or raise the limit: max_connections, or CONNECTION LIMIT of the role or the database."
)
_NO_SPACE = "53100"
_NO_SPACE_WORDS = "No space left on device"
"""What the system says where a server cannot begin a connection because its disk is full."""
_NO_SPACE_HINT = "Free space on the database server's disk; nothing was changed."
_UPGRADE_HINT = "Run `agentmesh db upgrade`."

_ADVICE: MappingProxyType[str, tuple[type[errors.DatabaseError], str]] = MappingProxyType(
    {
        "25006": (
            errors.DatabaseError,
            (
                "It is configured as read_only, its server is a standby (then use the URL of the primary), or "
                "default_transaction_read_only is on for the database or the role."
            ),
        ),
        "3F000": (errors.SchemaBehind, _UPGRADE_HINT),
        "40001": (errors.DatabaseBusy, "Others changed the same rows again and again; try once more."),
        "40P01": (errors.DatabaseBusy, "Others locked the same rows again and again; try once more."),
        "42501": (
            errors.DatabaseError,
            "Grant agentmesh_person (for workers: agentmesh_worker) to this role; only the schema's owner may do more.",
        ),
        "42P01": (errors.SchemaBehind, _UPGRADE_HINT),
        _NO_SPACE: (errors.DatabaseBusy, _NO_SPACE_HINT),
        "55P03": (errors.DatabaseBusy, "Another session holds the lock; look for it in pg_stat_activity."),
        "57014": (
            errors.DatabaseBusy,
            "It ran into statement_timeout, or somebody cancelled it; nothing was changed.",
        ),
    }
)


@contextmanager
def translated(where: str = "") -> Iterator[None]:
    """Raise psycopg's errors as domain errors; ``where`` names the database (see ``pool.describe``)."""
    try:
        yield
    except psycopg.Error as error:
        raise domain_error(error, where) from error


def domain_error(error: psycopg.Error, where: str = "") -> errors.AgentmeshError:
    """Return the domain error for a PostgreSQL error."""
    state = error.sqlstate or ""
    hint = printable(error.diag.message_hint or "")
    if state.startswith("AM"):
        return _REFUSALS.get(state, errors.Refused)(printable(error.diag.message_primary or ""), hint=hint)
    subject = f"The database {where}".rstrip()
    sentence = one_line(error.diag.message_primary or _reasons(error), _FOREIGN_WIDTH)
    if state in _ADVICE:
        kind, advice = _ADVICE[state]
        return kind(f"{subject} says: {sentence}", hint=hint or advice)
    if is_full(error):
        return errors.DatabaseUnreachable(f"{subject} has no connection free: {sentence}", hint=hint or _FULL_HINT)
    if is_without_space(error):
        return errors.DatabaseUnreachable(f"{subject} has no space left: {sentence}", hint=hint or _NO_SPACE_HINT)
    if login := _login_hint(error):
        return errors.DatabaseUnreachable(f"{subject} cannot be opened: {sentence}", hint=hint or login)
    if is_connection_failure(error):
        return errors.DatabaseUnreachable(f"{subject} cannot be reached: {sentence}", hint=hint or _UNREACHABLE_HINT)
    return errors.DatabaseError(f"{subject} says: {sentence}", hint=hint)


def _reasons(error: psycopg.Error) -> str:
    """Return why a connection failed; with several hosts the reason of each."""
    first, *each = _EACH_HOST.split(_AROUND.sub("", str(error)))
    return "; ".join(reason.strip() for reason in each or [first])


def _login_hint(error: psycopg.Error) -> str:
    """Return advice about a failed login; nothing for other errors.

    libpq gives no SQLSTATE for a connection that was refused. It knows whether the server has asked for a password.
    """
    if error.sqlstate is not None:
        return _LOGIN_HINT if error.sqlstate.startswith("28") else ""
    if error.pgconn is None or error.pgconn.status != ConnStatus.BAD:
        return ""
    if error.pgconn.needs_password:
        return _PASSWORD_HINT
    return _LOGIN_HINT if error.pgconn.used_password or _LOGIN_WORDS.search(str(error)) else ""


def is_full(error: psycopg.Error) -> bool:
    """Return whether a connection was refused because the server, the role or the database has as many as it may."""
    if error.sqlstate is not None:
        return error.sqlstate == _FULL
    return isinstance(error, psycopg.OperationalError) and bool(_FULL_WORDS.search(str(error)))


def is_without_space(error: psycopg.Error) -> bool:
    """Return whether the server's disk is full."""
    if error.sqlstate is not None:
        return error.sqlstate == _NO_SPACE
    return isinstance(error, psycopg.OperationalError) and _NO_SPACE_WORDS in str(error)


def is_connection_failure(error: psycopg.Error) -> bool:
    """Return whether the connection failed or was lost, rather than one statement on it."""
    state = error.sqlstate
    if state is None:  # libpq noticed it, not the server
        return isinstance(error, psycopg.OperationalError)
    return state.startswith(_CONNECTION_STATES)
