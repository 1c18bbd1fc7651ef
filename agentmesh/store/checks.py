"""What must hold in the rows, whatever raced or crashed before, and which agents break it. It changes nothing.

All is read in one snapshot. Every change of the engine is one commit that leaves everything in order. So each invariant
must hold at any instant, and the checks may run while a mesh is working.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, LiteralString
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import SessionId
from agentmesh.sql import sentence, statement
from agentmesh.store.deadline import ANSWER_SECONDS, answering_within

INVARIANTS: Final = (
    "checks.tree_is_whole",
    "checks.nobody_outlives_a_parent",
    "checks.limits_hold",
    "checks.rights_only_shrink",
    "checks.forks_begin_between_steps",
    "checks.transcripts_have_no_gaps",
    "checks.death_is_the_last_row",
    "checks.the_dead_do_nothing",
    "checks.mail_stays_in_its_session",
    "checks.read_mail_is_shown",
    "checks.shown_mail_is_read_once",
    "checks.mail_is_read_in_order",
    "checks.idle_has_no_waking_mail",
    "checks.only_running_works",
    "checks.turns_add_up",
    "checks.owners_are_alive",
    "checks.calls_have_one_result",
    "checks.results_come_before_the_next_answer",
    "checks.calls_are_the_models",
    "checks.waits_have_their_calls",
    "checks.nobody_waits_in_a_circle",
    "checks.a_person_is_asked",
    "checks.tasks_are_worked_on",
    "checks.batches_add_up",
    "checks.figures_add_up",
    "checks.budgets_add_up",
    "checks.everybody_works_in_its_session",
    "checks.snapshots_are_of_what_happened",
    "checks.a_merge_is_whole_or_absent",
    "checks.leases_end_with_their_turn",
    "checks.images_are_stored",
)
"""The names of their statements, in the order in which people are shown them."""

_LONGEST: Final = 600.0
"""Time limit of one statement, in seconds."""
MOST: Final = 100
"""How many rows are returned for one invariant; more would not help anybody."""

# One that is being erased lacks rows until it is gone.
_BROKEN_BY: Final = (
    "select session_id, agent_id, name, detail from ({}) as broken"
    " where (%(session)s::uuid is null or session_id = %(session)s::uuid)"
    " and not exists (select from agentmesh.sessions e where e.id = session_id and e.erasing_at is not null)"
    " order by session_id, name, detail limit %(most)s"
)
_SETTINGS: Final[LiteralString] = (
    "select set_config('jit', 'off', true), set_config('work_mem', '64MB', true),"
    " set_config('statement_timeout', '10min', true)"
)
"""For statements that read whole tables. Compiling them would take longer than most of them run."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One agent that breaks an invariant."""

    session_id: UUID
    agent_id: UUID | None
    """None if a session has no root, or a workspace is nobody's."""
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant and the agents that break it: none if it holds."""

    name: str
    meaning: str
    """In one sentence."""
    breaches: list[Breach] = field(default_factory=list)


def look(conn: Connection, session: SessionId | None = None) -> list[Invariant]:
    """Return every invariant of the database, or of one session, with the agents that break it, all at one instant."""
    with conn.transaction():
        conn.execute("set transaction isolation level repeatable read, read only")
        return examine(conn, session)


def examine(conn: Connection, session: SessionId | None = None) -> list[Invariant]:
    """Do the same in a transaction of the caller's."""
    conn.execute(_SETTINGS)
    values = {"session": session, "most": MOST}
    with answering_within(conn, _LONGEST + ANSWER_SECONDS), conn.cursor(row_factory=class_row(Breach)) as cursor:
        return [
            Invariant(
                name.partition(".")[2],
                sentence(name),
                cursor.execute(_BROKEN_BY.format(statement(name)), values).fetchall(),
            )
            for name in INVARIANTS
        ]
