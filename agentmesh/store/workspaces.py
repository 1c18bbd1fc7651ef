"""Workspaces: the directories in which agents' tools work. The row comes first, the directory after.

A process that makes, removes or repairs a directory asks here what to do, does it, and then says so here. Each function
may be called again with the same arguments, so a commit whose outcome is unknown is simply repeated. ``snapshots`` has
what was in a directory and when, ``merges`` how files get from one to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.errors import UnknownWorkspace
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import one_line, storable
from agentmesh.domain.workspaces import Source, Workspace, WorkspaceView
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, typed_row

_LONGEST_PROBLEM = 1000


class Made(NamedTuple):
    """A directory that was made for an own workspace."""

    path: str
    """The directory that tools get."""
    host: str
    os_user: str
    repository: str
    """The directory of the repository that has its snapshots."""
    tree: str
    """The tree that it was made from: its base and its first snapshot."""
    ref: str | None = None
    """The ref that keeps the tree."""


def get(conn: Connection, workspace: UUID) -> Workspace:
    """Return a workspace or raise UnknownWorkspace."""
    return _one(conn, statement("workspaces.by_id"), workspace, f"there is no workspace {workspace}")


def of_agent(conn: Connection, agent: AgentId) -> Workspace:
    """Return the workspace of an agent, dead or alive; raise UnknownWorkspace if there is no such agent."""
    return _one(conn, statement("workspaces.of_agent"), agent, f"there is no agent {agent}")


def of_session(conn: Connection, session: SessionId) -> Workspace:
    """Return the shared workspace of a session: its directory. Raise UnknownWorkspace if there is no session."""
    return _one(conn, statement("workspaces.of_session"), session, f"there is no session {session}")


def source(conn: Connection, workspace: UUID) -> Source:
    """Return the source from which an own workspace is to be made; raise UnknownWorkspace if it is not an own one.

    An origin that was never made, or is removed, stands aside for its own origin, unless a tree of its is known.
    """
    values = {"workspace": workspace}
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(statement("workspaces.source"), values).fetchone()
    if row is None:
        raise UnknownWorkspace(
            f"there is no tree of an agent's own {workspace}", hint="agentmesh workspaces lists them."
        )
    return Source(row["tree"], row["is_fixed"], get(conn, row["origin"]))


def ready(conn: Connection, lease: Lease, made: Made) -> Workspace:
    """Record that the tree of the lease's agent was made: planned or failed becomes ready. Raise Fenced.

    If it is ready already, for example because a sibling in the same tree was faster, nothing changes.
    """
    values = {
        "agent": lease.agent_id,
        "path": storable(made.path),
        "host": made.host,
        "os_user": made.os_user,
        "repository": storable(made.repository),
        "tree": made.tree,
        "ref": made.ref,
        **caller(lease),
    }
    with conn.cursor(row_factory=typed_row(Workspace)) as cursor:
        row = cursor.execute(statement("workspaces.ready"), values).fetchone()
    return _known(row, f"there is no agent {lease.agent_id}")


def failed(conn: Connection, lease: Lease, problem: str) -> None:
    """Record why the tree of the lease's agent could not be made; ignored if it is ready. Raise Fenced."""
    values = {"agent": lease.agent_id, "problem": one_line(storable(problem), _LONGEST_PROBLEM), **caller(lease)}
    conn.execute(statement("workspaces.failed"), values)


def note_repository(conn: Connection, workspace: UUID, repository: str | None, problem: str | None = None) -> None:
    """Record the repository of a shared workspace, or the problem: why it has none. Both None: unknown.

    A fork with a tree of its own is refused as long as the session's directory is known to have none. So look before
    such a fork: somebody may have made one since.
    """
    values = {
        "workspace": workspace,
        "repository": None if repository is None else storable(repository),
        "problem": None if problem is None else one_line(storable(problem), _LONGEST_PROBLEM),
    }
    conn.execute(statement("workspaces.note_repository"), values)


def unused(conn: Connection, host: str, os_user: str, limit: int = 100) -> list[Workspace]:
    """Return own workspaces that no living agent works in and whose directory is, or may be, on this host.

    For each: take the ``final`` snapshot if it is ready, call ``removing``, remove the directory, call ``removed``.
    Those whose removal was begun and not finished come first.
    """
    values = {"host": host, "os_user": os_user, "limit": limit}
    with conn.cursor(row_factory=typed_row(Workspace)) as cursor:
        return cursor.execute(statement("workspaces.unused"), values).fetchall()


def removing(conn: Connection, workspace: UUID) -> Workspace:
    """Record that the directory is about to be removed; return the row. After this it can only become removed.

    Raise WorkspaceInUse if it is a session's directory, or a living agent works in it, or a merge is being written
    there; UnknownWorkspace.
    """
    return _changed(conn, statement("workspaces.removing"), workspace)


def removed(conn: Connection, workspace: UUID) -> Workspace:
    """Record that the directory is gone; return the row. Raise WorkspaceInUse unless ``removing`` was called."""
    return _changed(conn, statement("workspaces.removed"), workspace)


def moved(conn: Connection, workspace: UUID, path: str, repository: str | None) -> Workspace:
    """Record that the directory or its repository is elsewhere now, because a person moved it; return the row."""
    values = {
        "workspace": workspace,
        "path": storable(path),
        "repository": None if repository is None else storable(repository),
    }
    with conn.cursor(row_factory=typed_row(Workspace)) as cursor:
        row = cursor.execute(statement("workspaces.moved"), values).fetchone()
    return _known(row, f"there is no workspace {workspace}")


def siblings(conn: Connection, workspace: UUID, paths: Sequence[str], limit: int = 50) -> list[Workspace]:
    """Return ready own workspaces of the same origin, with living agents, that have changed one of these paths.

    The workspace itself is not among them. For conflicts that grow: merge these with it in memory.
    """
    values = {"workspace": workspace, "paths": [storable(path) for path in paths], "limit": limit}
    with conn.cursor(row_factory=typed_row(Workspace)) as cursor:
        return cursor.execute(statement("workspaces.siblings"), values).fetchall()


def listing(conn: Connection, session: SessionId | None = None, *, own_only: bool = False) -> list[WorkspaceView]:
    """Return the workspaces of a session, or of all, as people see them, oldest first; removed ones too."""
    values = {"session": session, "own_only": own_only}
    with conn.cursor(row_factory=typed_row(WorkspaceView)) as cursor:
        return cursor.execute(statement("workspaces.listing"), values).fetchall()


def ids(conn: Connection, host: str, os_user: str) -> set[UUID]:
    """Return the own workspaces whose directory is, or may be, on this host: other directories there are nobody's."""
    values = {"host": host, "os_user": os_user}
    with conn.cursor(row_factory=class_row(_Id)) as cursor:
        return {row.id for row in cursor.execute(statement("workspaces.ids"), values)}


class _Id(NamedTuple):
    id: UUID


def _changed(conn: Connection, query: LiteralString, workspace: UUID) -> Workspace:
    with conn.cursor(row_factory=typed_row(Workspace)) as cursor:
        row = cursor.execute(query, {"workspace": workspace}).fetchone()
    return _known(row, f"there is no workspace {workspace}")


def _one(conn: Connection, query: LiteralString, of: UUID, else_: str) -> Workspace:
    with conn.cursor(row_factory=typed_row(Workspace)) as cursor:
        return _known(cursor.execute(query, {"id": of}).fetchone(), else_)


def _known(row: Workspace | None, else_: str) -> Workspace:
    if row is None:
        raise UnknownWorkspace(else_, hint="agentmesh workspaces lists them.")
    return row
