"""Reports of a fixed form: the form that an agent owes, and the report that it has made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.errors import UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Allowance
from agentmesh.sql import statement


class Owed(NamedTuple):
    """The form of a report that an agent owes."""

    schema: dict[str, Any]
    check_command: str | None
    """What must exit with 0 before the report is taken; None if nothing is run."""
    check_approved: bool
    """Whether the agent that asked for the check was allowed to run it."""
    may_halt: bool
    """Whether the report may end the work of the agents above this one."""
    permissions: Any
    """The agent's own rules, as stored."""
    allowance: Mapping[str, Any]
    """The session's part, as stored."""

    @property
    def allowed(self) -> Allowance:
        """What agents of the session may do now without asking."""
        return Allowance.from_json(self.allowance)


class Reported(NamedTuple):
    """The newest report of an agent."""

    status: str
    """``owed``; ``reported`` or ``failed``, of a fork; how its task ended, of a sub-agent."""
    result: dict[str, Any] | None
    attempts: int
    check_exit: int | None
    """How the newest check ended; None if none ran to its end."""
    refused: str | None
    """What was wrong with the newest call of ``report``."""


def owed(conn: Connection, agent: AgentId) -> Owed | None:
    """Return the form of an agent's report; None if it reports in words."""
    with conn.cursor(row_factory=class_row(Owed)) as cursor:
        return cursor.execute(statement("forms.owed"), {"agent": agent}).fetchone()


def reported(conn: Connection, agent: AgentId) -> Reported | None:
    """Return an agent's newest report; None if its reports have no form."""
    with conn.cursor(row_factory=class_row(Reported)) as cursor:
        return cursor.execute(statement("forms.reported"), {"agent": agent}).fetchone()


def rights(conn: Connection, agent: AgentId) -> tuple[Any, Allowance]:
    """Return an agent's own rules, as stored, and what agents of its session may do now without asking."""
    found = conn.execute(statement("forms.rights"), {"agent": agent}).fetchone()
    if found is None:
        raise UnknownAgent(f"there is no agent {agent}", hint="agentmesh ps --all lists the agents.")
    return found[0], Allowance.from_json(found[1])
