"""Processes: commands of agents that go on in the background; their ends are mail."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, SessionId, WorkerId
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, scalar

CHANNEL = "agentmesh_processes"
"""Tells workers, by id in the payload, that some of their processes must end."""


@dataclass(frozen=True, slots=True)
class ProcessKey:
    """Which process it is, and who runs it."""

    session: SessionId
    process: int
    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Process:
    """A process in the background, without its output."""

    id: int
    agent_id: AgentId
    agent_name: str
    command: str
    watch: str | None
    state: str
    """running, exited, killed or lost."""
    exit_code: int | None
    matches: int
    output_bytes: int
    started_at: datetime
    ended_at: datetime | None
    without_worker: bool


@dataclass(frozen=True, slots=True)
class ProcessWithOutput(Process):
    """A process with what was kept of its output."""

    output: str


def start(conn: Connection, lease: Lease, command: str, watch: str | None) -> int:
    """Store a process that the worker starts next; return its number, the same for the same call.

    Raise TooManyProcesses, or Fenced if the worker no longer owns the agent.
    """
    values = {"agent": lease.agent_id, "command": storable(command), "watch": watch, **caller(lease)}
    return scalar(conn, statement("processes.start"), values, int)


def keep_output(conn: Connection, key: ProcessKey, output: str, written: int) -> bool:
    """Store its output so far; return False if the process must end."""
    values = {**_named(key), "output": storable(output), "written": written}
    return scalar(conn, statement("processes.keep_output"), values, bool)


def match(conn: Connection, key: ProcessKey, line: str, so_far: int) -> bool:
    """Tell the owner of a line that was watched for; return False if the process must end.

    ``so_far`` is the number of lines that have matched. The same number again changes nothing.
    """
    values = {**_named(key), "line": storable(line), "so_far": so_far}
    return scalar(conn, statement("processes.match"), values, bool)


def unwatch(conn: Connection, key: ProcessKey) -> bool:
    """Tell the owner, once, that no line is watched for any more; return False if the process must end."""
    return scalar(conn, statement("processes.unwatch"), _named(key), bool)


def finish(
    conn: Connection,
    key: ProcessKey,
    state: str,
    exit_code: int | None,
    output: str,
    written: int,
    note: str = "",
    *,
    quiet: bool = False,
) -> bool:
    """Store how a process ended, and tell its owner; return False if its end is stored already.

    ``quiet``: an owner that is idle or interrupted reads of it in its next turn, and is not woken.
    """
    ended = {"state": state, "exit_code": exit_code, "note": storable(note) or None, "quiet": quiet}
    values = {**_named(key), **ended, "output": storable(output), "written": written}
    return scalar(conn, statement("processes.finish"), values, bool)


def stop(conn: Connection, session: SessionId, process: int) -> bool:
    """Ask for the end of a process; return False if it has ended already. Raise UnknownProcess."""
    return scalar(conn, statement("processes.stop"), {"session": session, "process": process}, bool)


def to_end(conn: Connection, worker: WorkerId, keys: Collection[ProcessKey]) -> set[tuple[SessionId, int]]:
    """Return which of a worker's processes it must end."""
    values = {"worker": worker, "sessions": [key.session for key in keys], "ids": [key.process for key in keys]}
    return {(SessionId(session), number) for session, number in conn.execute(statement("processes.to_end"), values)}


def listed(conn: Connection, session: SessionId, above: AgentId | None = None) -> Sequence[Process]:
    """Return the newest 100 processes of a session, or of an agent and all below it, the newest first."""
    values = {"session": session, "above": above}
    with conn.cursor(row_factory=class_row(Process)) as cursor:
        return cursor.execute(statement("processes.listed"), values).fetchall()


def get(conn: Connection, session: SessionId, process: int, above: AgentId | None = None) -> ProcessWithOutput | None:
    """Return one process of a session, None if there is none with this number; ``above`` as for ``listed``."""
    values = {"session": session, "process": process, "above": above}
    with conn.cursor(row_factory=class_row(ProcessWithOutput)) as cursor:
        return cursor.execute(statement("processes.get"), values).fetchone()


def _named(key: ProcessKey) -> dict[str, object]:
    return {"session": key.session, "process": key.process, "worker": key.worker}
