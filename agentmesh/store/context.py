"""What an agent's model is sent, and how a person changes it. ``transcript`` reads the rows themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store.call import Lease, bigint, caller, scalar
from agentmesh.store.jsonb import jsonb
from agentmesh.store.steps import Granted, Planned, asked, granted

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A part of what fills a context."""

    part: str
    """system prompt, tools, summary, inherited, user, mail, assistant or tool results."""
    tool: str | None
    """The tool whose results these are; None for other parts."""
    rows: int
    bytes: int

    @property
    def name(self) -> str:
        """``assistant``, ``tool results: bash``."""
        return f"{self.part}: {self.tool}" if self.tool else self.part

    @property
    def tokens(self) -> int:
        """About how many tokens it has: an estimate from its bytes."""
        return -(-self.bytes // _BYTES_PER_TOKEN)


def clear(conn: Connection, agent: AgentId) -> int:
    """Send the model no earlier row from now on; return the seq of the row that says so. Raise AgentBusy."""
    return scalar(conn, statement("context.clear"), {"agent": agent}, int)


def mark(conn: Connection, agent: AgentId, label: str | None = None) -> str:
    """Set a mark that ``rewind`` goes back to; return its label, which is a number if none is given."""
    return scalar(conn, statement("context.mark"), {"agent": agent, "label": _text(label)}, str)


def rewind(conn: Connection, agent: AgentId, label: str | None = None) -> str:
    """Go back to the newest mark (with this label); return the label. Raise NoMark or AgentBusy."""
    return scalar(conn, statement("context.rewind"), {"agent": agent, "label": _text(label)}, str)


def rewind_to(conn: Connection, agent: AgentId, row: int) -> int:
    """Go back to this row of the agent's own, or to before the step that has it; return that row.

    0 is before its first. The agent must be idle. Files stay as they are. Raise BadArgument, AgentBusy or DeadAgent.
    """
    return scalar(conn, statement("context.rewind_to"), {"agent": agent, "row": bigint(row, "the row")}, int)


def restore(conn: Connection, agent: AgentId) -> int:
    """Lift the newest rewind: send again what it took away; return the row that it had gone back to.

    Raise NothingToRestore if there is none, or the conversation has gone on since. The agent must be idle.
    """
    return scalar(conn, statement("context.restore"), {"agent": agent}, int)


@dataclass(frozen=True, slots=True)
class Undone:
    """The newest things that were undone, by the rows that say so."""

    rewound: int | None
    """The newest rewind that can be lifted."""
    files: int | None
    """When a snapshot put files back."""


def undone(conn: Connection, agent: AgentId, snapshot: int) -> Undone:
    """Return the newest rewind of an agent, and the row of this snapshot, which undid its files."""
    with conn.cursor(row_factory=class_row(Undone)) as cursor:
        values = {"agent": agent, "snapshot": snapshot}
        return cursor.execute(statement("context.undone"), values).fetchone() or Undone(None, None)


def marks(conn: Connection, agent: AgentId) -> list[str]:
    """Return the labels of the marks in force, the newest first."""
    return [label for (label,) in conn.execute(statement("context.marks"), {"agent": agent}).fetchall()]


def compact(conn: Connection, agent: AgentId) -> None:
    """Have a worker make a summary of an idle agent's context; raise NothingToCompact or AgentBusy."""
    conn.execute(statement("context.compact"), {"agent": agent})


def summarize(
    conn: Connection, lease: Lease, content: Mapping[str, Any], usage: Mapping[str, Any] | None, *, ends: bool
) -> AgentStatus:
    """Store a summary and what making it used; with ``ends``, also end the turn. Return the agent's status."""
    values = {
        "agent": lease.agent_id,
        "content": jsonb(dict(content)),
        "usage": None if usage is None else jsonb(dict(usage)),
        "ends": ends,
        **caller(lease),
    }
    return AgentStatus(scalar(conn, statement("context.summarize"), values, str))


def begin_summary(conn: Connection, lease: Lease, planned: Planned) -> Granted:
    """Reserve the model call for a summary that a person asked for; return what the budget allows."""
    values = {"agent": lease.agent_id, **asked(planned), **caller(lease)}
    return granted(scalar(conn, statement("context.begin_summary"), values, dict))


def filling(conn: Connection, agent: AgentId) -> list[ContextPart]:
    """Return the parts that fill the agent's context, in the order in which they are sent."""
    with conn.cursor(row_factory=class_row(ContextPart)) as cursor:
        return cursor.execute(statement("context.filling"), {"agent": agent}).fetchall()


def total(parts: Sequence[ContextPart]) -> ContextPart:
    """Return the sum of all parts."""
    return ContextPart("all", None, sum(part.rows for part in parts), sum(part.bytes for part in parts))


def _text(value: str | None) -> str | None:
    return None if value is None else storable(value)
