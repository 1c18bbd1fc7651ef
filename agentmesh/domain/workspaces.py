"""Where agents' tools work, what changed there, and what was merged: rows as the rest of the program sees them.

A tree is the id of a tree object of Git's: all files of a directory at one moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from agentmesh.domain.ids import AgentId, SessionId


class WorkspaceKind(StrEnum):
    """Whose directory a workspace is."""

    SHARED = "shared"
    """The session's directory."""
    OWN = "own"
    """A tree of an agent's own, made from what another workspace had."""


def own_tree(tool: str, arguments: object) -> str:
    """Return `` (own tree)`` for a call that asks for a tree of its child's own, nothing for all others."""
    if tool not in ("fork", "task") or not isinstance(arguments, Mapping):
        return ""
    return " (own tree)" if arguments.get("workspace") == WorkspaceKind.OWN else ""


class WorkspaceState(StrEnum):
    """State of a workspace."""

    PLANNED = "planned"
    """Its row is there, its directory is not. Becomes ready, failed, removing."""
    READY = "ready"
    """Tools work in it. Becomes removing."""
    FAILED = "failed"
    """Its directory could not be made; its agent's next turn tries again. Becomes ready, removing."""
    REMOVING = "removing"
    """Its directory is being removed. Becomes removed."""
    REMOVED = "removed"
    """Its snapshots are left; final."""


class MergeState(StrEnum):
    """State of a merge."""

    WRITING = "writing"
    """The target's files are being written. Becomes done, refused."""
    DONE = "done"
    """All of it is in the target. Becomes undone."""
    REFUSED = "refused"
    """Nothing of it is in the target; final."""
    UNDONE = "undone"
    """It was done, and the target's files were put back. Becomes done."""


class Workspace(NamedTuple):
    """A directory in which agents' tools work."""

    id: UUID
    session_id: SessionId
    kind: WorkspaceKind
    origin: UUID | None
    """Own: the workspace that it was made from."""
    state: WorkspaceState
    path: str | None
    """The directory that tools get; None while it is planned or failed."""
    host: str | None
    """Where that is; None as long as path is."""
    os_user: str | None
    repository: str | None
    """The directory of its Git repository; None if unknown or none."""
    problem: str | None
    """The reason why making it failed, or why a shared one has no repository."""
    at_tree: str | None
    """Own: the tree to make it from; None: what its origin has when it is made."""
    base: str | None
    """Own: the tree that it has in common with its origin; merges move it."""
    head: str | None
    """The tree of its newest snapshot; None if there is none."""


class Source(NamedTuple):
    """The tree from which an own workspace is to be made."""

    tree: str | None
    """The tree to use if it is fixed, or if the origin's files cannot be looked at; None: there is none."""
    is_fixed: bool
    """Whether the tree was chosen when the workspace was planned; else a new snapshot of ``origin`` goes first."""
    origin: Workspace
    """The nearest workspace above that has files, or had: look at its files if it is ready and here."""


class WorkspaceView(NamedTuple):
    """A workspace as people see it (``v_workspaces``)."""

    id: UUID
    session_id: SessionId
    kind: WorkspaceKind
    state: WorkspaceState
    path: str | None
    host: str | None
    repository: str | None
    problem: str | None
    head: str | None
    agents: Sequence[str]
    """Names of the living agents that work in it."""
    snapshots: int
    """How many are kept."""
    created_at: datetime
    os_user: str | None = None
    merged: bool = False
    """Whether it has been merged into its origin, and nothing new is in it since."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a workspace at one moment."""

    id: int
    workspace_id: UUID
    agent_id: AgentId | None
    """The agent whose work it shows; None: somebody who is no agent."""
    name: str | None
    """That agent's name."""
    seq: int | None
    """The call after which it was taken."""
    ordinal: int | None
    row: int | None
    """The row of the agent's transcript with that call's result."""
    kind: str
    """base, outside, call, merge, undo, redo, final."""
    tree: str
    before: str | None
    """The newest tree before it; None for the first."""
    ref: str | None
    files: int
    """How many files changed; at most 2,000 of them have a row."""
    added: int
    removed: int
    left_out: Sequence[str]
    """Files that are too large."""
    merge_id: int | None
    made_at: datetime
    freed_at: datetime | None
    """When its ref was given up: the tree may be gone."""
    tool: str | None = None
    """The tool of the call; only read where snapshots are gone through."""


class Kept(NamedTuple):
    """A ref that keeps a tree, and where it is."""

    snapshot_id: int
    workspace_id: UUID
    repository: str
    ref: str


@dataclass(frozen=True, slots=True)
class FileTotal:
    """What an agent changed in one file, over all its calls (``v_changes``). A path is foreign text."""

    agent_id: AgentId
    name: str
    workspace_id: UUID
    path: str
    added: int
    """Lines, by all its calls together."""
    removed: int
    status: str
    """By its newest: added, changed, removed."""
    snapshots: int
    """How many of its calls changed the file."""
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of one workspace's files into another's (``v_merges``)."""

    id: int
    session_id: SessionId
    source: UUID
    target: UUID
    source_agent: AgentId
    target_agent: AgentId | None
    by_agent: AgentId | None
    """The agent that asked for it; None: a person."""
    seq: int | None
    ordinal: int | None
    is_up: bool
    """Whether the source was made from the target."""
    base: str
    ours: str
    """The target's tree before."""
    theirs: str
    """The source's tree."""
    result: str | None
    """The target's tree afterwards; None if it was refused before there was one."""
    state: MergeState
    check_command: str | None
    check_exit: int | None
    files: Sequence[Sequence[Any]]
    """[path, status, added, removed]."""
    conflicts: Sequence[Mapping[str, Any]]
    reason: str | None
    """Why it was refused."""
    started_at: datetime
    ended_at: datetime | None


class Conflict(NamedTuple):
    """A file that two agents changed, in trees of their own, in ways that do not fit (``v_conflicts``)."""

    id: int
    a: UUID
    b: UUID
    path: str
    second: AgentId
    """The agent that changed it last, and is told."""
    other: AgentId | None
    """A living agent of the other workspace."""
    other_name: str | None


class FileLease(NamedTuple):
    """The one agent that writes below a path of a shared workspace."""

    prefix: str
    agent_id: AgentId
    name: str
    mine: bool
    """Whether it is the asker's."""
