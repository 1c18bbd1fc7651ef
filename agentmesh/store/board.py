"""What screens read: all agents of a session at a glance, and windows of conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import fields
from decimal import Decimal
from typing import Any, NamedTuple, cast
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.errors import UnknownSession
from agentmesh.domain.ids import AgentId, MailId, SessionId
from agentmesh.domain.rows import AgentView, Row
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.sql import statement
from agentmesh.store.call import scalar, typed_row
from agentmesh.store.mailbox import with_mail

_PENDING_WIDTH = 4_000
"""Characters of an unread message that a screen gets."""
_ALL = 2**62
SOME = 500
"""Sessions with at most this many living agents, and at most this many dead, are shown in full."""
_NEAR = 100
"""In a larger session: the limit on running agents, and on children, siblings and awaited agents of each agent wanted.
"""
MOST_WORKING = 10_000
"""Running agents are counted up to this many."""
_SAID = 400
"""Characters of an agent's last words that a board reads."""
_LOOKED = 30
"""How many rows of an agent are searched for its last words."""
_CALLS = 200
"""How many calls of an agent are read for its strip of the last minutes."""
SESSIONS, _FEW, _MOST_SESSIONS = 100, 20, 1_000
"""For all sessions together: how many sessions at rest, how many agents of a kind from each, and from how many."""
_NOT_SHOWN = ("path", "tree_tokens", "tree_cost_usd")
_VIEW = tuple(field.name for field in fields(AgentView) if field.name not in _NOT_SHOWN)


class Standing(NamedTuple):
    """An agent, with what only screens need to know about it."""

    view: AgentView
    running_for: float | None
    """Seconds; None while it is not running."""
    ended_with: Kind | None
    """Kind of the row that its last turn ended with."""
    capturing: bool


class Detail(NamedTuple):
    """What a board shows about an agent besides its state."""

    id: AgentId
    model: str
    model_calls: int
    since: float
    """How many seconds it has been in its state."""
    said: str
    """The end of what it wrote last, or of the error that ended its turn; empty if there is neither."""
    context_tokens: int | None
    """Tokens of its last model call, with the answer; None before the first."""
    conflicts: int = 0
    """How many files of its own tree conflict with another agent's."""


class Ran(NamedTuple):
    """A stretch of time in which an agent worked."""

    id: AgentId
    began: float
    """Seconds ago."""
    ended: float


class Elsewhere(NamedTuple):
    """An agent of any session."""

    view: AgentView
    session: str
    """The session's title, or the beginning of its id."""
    asks: bool
    """Whether it waits for the answer to a request."""
    database: str = ""
    """The name of the session's database; empty if nobody asked several."""


class StandingWait(NamedTuple):
    """A wait that an agent is in."""

    waiter: AgentId
    targets: list[UUID] | None
    received: list[UUID]
    left: float
    """Seconds until its deadline."""


class PendingMail(NamedTuple):
    """A message from the user that its recipient has not read, cut if it is long."""

    id: MailId
    recipient: AgentId
    body: str


class Used(NamedTuple):
    """What all agents of a session have used together."""

    tokens: int
    cost_usd: Decimal | None
    """Known cost; None when no price is known."""


class Left(NamedTuple):
    """What goes on in a session that nobody is looking at."""

    running: int
    tokens: int | None
    """How many it may still use; None without a cap."""
    cost_usd: Decimal | None
    """How much known cost it may still cause; None without a cap."""
    untouched: bool
    """Whether nothing has ever happened in the session."""


def left(conn: Connection, session: SessionId) -> Left:
    """Return how many agents run and what they may still spend; raise UnknownSession."""
    with conn.cursor(row_factory=class_row(Left)) as cursor:
        found = cursor.execute(statement("board.left"), {"session": session}).fetchone()
    if found is None:
        raise UnknownSession(f"there is no session {session}", hint="agentmesh sessions lists them.")
    return found


def agents(conn: Connection, session: SessionId, wanted: Collection[AgentId] = ()) -> list[Standing]:
    """Return the agents of the session that a screen shows, the dead and reaped too, oldest first.

    If there are more than ``SOME``, return only those that a person may look for, with their ancestors. Those
    ``wanted`` are always among them.
    """
    values = {"session": session, "wanted": list(wanted), "some": SOME, "near": _NEAR}
    with conn.cursor(row_factory=dict_row) as cursor:
        return [_standing(row) for row in cursor.execute(statement("board.agents"), values).fetchall()]


def working(conn: Connection, session: SessionId) -> int:
    """Return how many agents of the session are running, up to ``MOST_WORKING``, without external agents."""
    return scalar(conn, statement("board.working"), {"session": session, "most": MOST_WORKING}, int)


def used(conn: Connection, session: SessionId, agents: Collection[AgentId]) -> Used:
    """Return the use of all agents of the session; a missing price is looked for only in the calls of ``agents``."""
    with conn.cursor(row_factory=class_row(Used)) as cursor:
        values = {"session": session, "agents": list(agents)}
        return cast(Used, cursor.execute(statement("board.used"), values).fetchone())


def waits(conn: Connection, agents: Collection[AgentId]) -> list[StandingWait]:
    """Return the waits of these agents."""
    with conn.cursor(row_factory=class_row(StandingWait)) as cursor:
        return cursor.execute(statement("board.waits"), {"agents": list(agents)}).fetchall()


def pending(conn: Connection, agents: Collection[AgentId]) -> list[PendingMail]:
    """Return the messages from the user that these agents have not read, oldest first."""
    with conn.cursor(row_factory=class_row(PendingMail)) as cursor:
        values = {"agents": list(agents), "width": _PENDING_WIDTH}
        return cursor.execute(statement("board.pending"), values).fetchall()


def details(conn: Connection, agents: Collection[AgentId]) -> list[Detail]:
    """Return the details of these agents, in no order."""
    with conn.cursor(row_factory=class_row(Detail)) as cursor:
        return cursor.execute(
            statement("board.details"), {"agents": list(agents), "width": _SAID, "looked": _LOOKED}
        ).fetchall()


def ran(conn: Connection, agents: Collection[AgentId], seconds: float) -> list[Ran]:
    """Return when these agents worked within the last seconds, in no order; stretches may overlap."""
    with conn.cursor(row_factory=class_row(Ran)) as cursor:
        values = {"agents": list(agents), "seconds": seconds, "most": _CALLS}
        return cursor.execute(statement("board.ran"), values).fetchall()


def everywhere(
    conn: Connection, sessions: int = SESSIONS, few: int = _FEW, most: int = _MOST_SESSIONS
) -> list[Elsewhere]:
    """Return agents of open sessions: any that ask, run or have failed; roots and other ends only if they are new.

    At most ``few`` of each kind per session, from the newest sessions and at most ``most`` others.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            statement("board.everywhere"), {"sessions": sessions, "few": few, "most": most}
        ).fetchall()
    return [Elsewhere(_view(row), row["session"], row["asks"]) for row in rows]


def is_cut(found: Collection[Elsewhere], most: int = SESSIONS) -> bool:
    """Whether a database may have more open sessions than those whose agents at rest were found."""
    sessions = {(one.database, one.view.session_id) for one in found}
    return any(number >= most for number in Counter(database for database, _ in sessions).values())


def newest(conn: Connection, agent: AgentId, limit: int, before: int | None = None) -> list[Row]:
    """Return the agent's own newest rows (before a seq, if given), oldest first, at most ``limit``."""
    values = {"agent": agent, "before": _ALL if before is None else before, "limit": limit}
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        return with_mail(conn, cursor.execute(statement("board.before"), values).fetchall()[::-1])


def appended(conn: Connection, agent: AgentId, after: int, limit: int) -> list[Row]:
    """Return the agent's own rows after a seq, of all kinds, at most ``limit``."""
    values = {"agent": agent, "after": after, "limit": limit}
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        return with_mail(conn, cursor.execute(statement("board.appended"), values).fetchall())


def inherited(conn: Connection, agent: AgentId, limit: int) -> tuple[list[Row], int]:
    """Return the newest rows that the agent inherited, oldest first, and how many there are in all."""
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        rows = cursor.execute(statement("board.inherited"), {"agent": agent, "limit": limit}).fetchall()[::-1]
    return with_mail(conn, rows), scalar(conn, statement("board.inherited_count"), {"agent": agent}, int)


def _standing(row: dict[str, Any]) -> Standing:
    ended = row["ended_with"]
    return Standing(
        _view(row),
        row["running_for"],
        Kind(ended) if ended is not None else None,
        row["capturing"],
    )


def _view(row: dict[str, Any]) -> AgentView:
    view = {name: row[name] for name in _VIEW}
    return AgentView(**{**view, "status": AgentStatus(view["status"])})
