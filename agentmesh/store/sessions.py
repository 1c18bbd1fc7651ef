"""Sessions: start, find, end, delete and reap them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from agentmesh.domain.errors import SessionMoved, UnknownSession, UsageError
from agentmesh.domain.ids import AgentId, SessionId, beginning_with
from agentmesh.domain.rows import Session, SessionSummary
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store import moves
from agentmesh.store.call import scalar, typed_row
from agentmesh.store.jsonb import jsonb


class ExpiredSession(NamedTuple):
    """A session in which nothing has happened for a while."""

    id: SessionId
    title: str
    workdir: str
    created_at: datetime


class NewSession(NamedTuple):
    """What a session begins with."""

    workdir: str
    host: str
    os_user: str
    model: str
    """``provider/model``; workers that are configured for the provider run it."""
    system_prompt: str
    tools: Sequence[Mapping[str, Any]]
    title: str = ""
    permission_mode: PermissionMode = PermissionMode.ASK
    permissions: Any = ()
    limits: Mapping[str, Any] = MappingProxyType({})
    """max_depth, max_children, max_agents, max_unread, max_tokens, max_cost_usd, max_spawns, max_turns,
    max_turn_seconds, max_seconds, max_living, ask_agents; otherwise the database's defaults."""
    needs: Sequence[str] = ()
    """What a worker must offer to run it: ``tool weather``, ``type reviewer`` of a Python program."""
    endpoints: Sequence[str] = ()
    """Model servers that are configured where it begins; workers run its agents only if they have the same."""
    external: bool = False
    """Whether the root's turns run outside (in an MCP client), which joins as the root."""
    workspace: str = "shared"
    """Where forks work that do not say: ``shared``, in its directory, or ``own``, in trees of their own."""
    leases: Sequence[str] = ()
    """Paths of its directory below which one agent writes at a time."""
    effort: str | None = None
    """How hard its models think, where they can be told."""


LISTED: Final = 50
"""How many sessions a list has if nobody asks for another number."""
_BEFORE_ALL: Final = ExpiredSession(SessionId(UUID(int=0)), "", "", datetime(1, 1, 1, tzinfo=UTC))


def start_session(conn: Connection, new: NewSession) -> AgentId:
    """Begin a session with an idle root; return the root's id."""
    values = {
        "workdir": storable(new.workdir),
        "host": new.host,
        "os_user": new.os_user,
        "model": new.model,
        "system_prompt": storable(new.system_prompt),
        "tools": jsonb(list(new.tools)),
        "title": storable(new.title),
        "permission_mode": new.permission_mode,
        "permissions": Jsonb(new.permissions),
        "limits": Jsonb(dict(new.limits)),
        "needs": list(new.needs),
        "external": new.external,
        "endpoints": list(new.endpoints),
        "workspace": new.workspace,
        "leases": [storable(prefix) for prefix in new.leases],
        "effort": new.effort,
    }
    return AgentId(scalar(conn, statement("sessions.start"), values, UUID))


def get(conn: Connection, session: SessionId) -> Session:
    """Return the session or raise UnknownSession; SessionMoved, which is one, says where it is."""
    found = _sessions(conn, statement("sessions.by_id"), {"session": session})
    if not found:
        raise _moved(conn, str(session)) or UnknownSession(
            f"there is no session {session}", hint="agentmesh sessions lists them."
        )
    return found[0]


def require_still(conn: Connection, session: SessionId) -> None:
    """Raise UnknownSession if a session that somebody follows is gone; SessionMoved, which is one, says where it is."""
    try:
        get(conn, session)
    except SessionMoved:
        raise
    except UnknownSession:
        raise UnknownSession(
            f"the session {session} was deleted", hint="agentmesh sessions lists the others."
        ) from None


def matching(conn: Connection, prefix: str) -> list[Session]:
    """Return the sessions whose id is this or begins with it, at most 10; raise UsageError if it is empty."""
    if not prefix.strip():
        raise UsageError("the id of a session is empty", hint="Is a variable not set? agentmesh sessions lists them.")
    ids = beginning_with(prefix)
    return _sessions(conn, statement("sessions.by_prefix"), {"first": ids[0], "last": ids[1]}) if ids else []


def resolve(conn: Connection, prefix: str) -> Session:
    """Return the session whose id is this or begins with it; raise UnknownSession, or UsageError if it is empty.

    SessionMoved, which is an UnknownSession, says in which database it is.
    """
    found = matching(conn, prefix)
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownSession(
            f"{prefix!r} fits more than one session",
            hint="Give more of the id: " + ", ".join(str(s.id) for s in found[:5]),
        )
    raise _moved(conn, prefix) or UnknownSession(
        f"there is no session {prefix!r}", hint="agentmesh sessions lists them; give the id or 4 or more digits of it."
    )


def newest(conn: Connection, workdir: str, host: str, os_user: str) -> Session | None:
    """Return the newest session of a directory that has not ended."""
    values = {"workdir": storable(workdir), "host": host, "os_user": os_user}
    found = _sessions(conn, statement("sessions.newest"), values)
    return found[0] if found else None


def list_sessions(
    conn: Connection, workdir: str | None = None, limit: int = LISTED, wanted: str = ""
) -> list[SessionSummary]:
    """Return sessions (of one directory, if given) with their figures, newest first.

    Each word ``wanted`` is in the title or the directory of every one of them, or begins its id.
    """
    with conn.cursor(row_factory=class_row(SessionSummary)) as cursor:
        values = {"workdir": workdir and storable(workdir), "limit": limit, "words": storable(wanted).split()}
        return cursor.execute(statement("sessions.all"), values).fetchall()


def set_mode(conn: Connection, session: SessionId, mode: PermissionMode) -> None:
    """Change what tools of the session may do without asking."""
    conn.execute(statement("sessions.set_mode"), {"session": session, "mode": mode})


def end_session(conn: Connection, session: SessionId) -> int:
    """Kill all agents of the session, with the root; return how many died."""
    return scalar(conn, statement("sessions.end"), {"session": session}, int)


def delete_session(conn: Connection, session: SessionId) -> None:
    """Erase the session and all its rows; raise SessionRunning while one of its agents runs."""
    conn.execute(statement("sessions.delete"), {"session": session})


def expired(
    conn: Connection, age: int, host: str, os_user: str, after: ExpiredSession | None = None, limit: int = 100
) -> list[ExpiredSession]:
    """Return sessions of this host and user in which nothing has happened for so many seconds, the oldest first.

    ``after`` is the last one of the page before.
    """
    last = after or _BEFORE_ALL
    values = {
        "age": age,
        "host": host,
        "os_user": os_user,
        "after": last.created_at,
        "after_id": last.id,
        "limit": limit,
    }
    with conn.cursor(row_factory=class_row(ExpiredSession)) as cursor:
        return cursor.execute(statement("sessions.expired"), values).fetchall()


def half_erased(conn: Connection, host: str, os_user: str) -> list[ExpiredSession]:
    """Return sessions of this host and user whose erasing was cut short."""
    with conn.cursor(row_factory=class_row(ExpiredSession)) as cursor:
        values = {"host": host, "os_user": os_user}
        return cursor.execute(statement("sessions.half_erased"), values).fetchall()


def begin_erasing(conn: Connection, session: SessionId, age: int) -> bool:
    """End and mark a session in which nothing has happened for so many seconds; return whether it is ours to erase."""
    return scalar(conn, statement("sessions.begin_erasing"), {"session": session, "age": age}, bool)


def erase_some(conn: Connection, session: SessionId, most: int) -> int:
    """Delete up to ``most`` rows of a marked session; return how many, 0 if ``delete_session`` is to take the rest."""
    return scalar(conn, statement("sessions.erase_some"), {"session": session, "most": most}, int)


def pin(conn: Connection, session: SessionId, *, pinned: bool) -> None:
    """Keep a session for good, or no longer; raise UnknownSession."""
    conn.execute(statement("sessions.pin"), {"session": session, "pinned": pinned})


def reap(conn: Connection, session: SessionId, agent: AgentId | None = None) -> int:
    """Hide the dead agents of the session, or one of them; return how many."""
    return scalar(conn, statement("sessions.reap"), {"session": session, "agent": agent}, int)


def _sessions(conn: Connection, query: LiteralString, values: Mapping[str, Any]) -> list[Session]:
    with conn.cursor(row_factory=typed_row(Session)) as cursor:
        return cursor.execute(query, values).fetchall()


def _moved(conn: Connection, prefix: str) -> SessionMoved | None:
    """Return the error that says where a session has gone; None if none has that fits."""
    gone = moves.departed(conn, prefix)
    return gone and SessionMoved(
        f"the session {gone.session_id} has moved to the database {gone.destination}",
        hint=f"Look for it there: --database {gone.destination}",
    )
