"""What operations on workspaces return. Texts and paths are foreign: clean them before a screen gets them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

from agentmesh.git.facts import Conflict, FileChange


def plan_id(*what: object) -> str:
    """Return an id of a plan to write files; ``what`` is all that a person's yes depends on."""
    return hashlib.sha256(json.dumps(what, default=str).encode()).hexdigest()[:16]


class MergeStatus(StrEnum):
    """How a merge ended."""

    MERGED = "merged"
    NOTHING = "nothing"
    """The source has changed nothing that the target does not have."""
    CONFLICTS = "conflicts"
    """Both sides changed the same places: nothing of the target has changed, and the source's agent was told."""
    CHECK_FAILED = "check_failed"
    """The check's exit code was not 0, or it ran out of time: nothing of the target has changed."""
    CHANGED = "changed"
    """Files of the target are not as expected, so nothing was written: somebody works there, or they were left out."""
    PREVIEW = "preview"
    """What a merge would do; nothing was changed, and nobody was told."""
    STOPPED = "stopped"
    """It was interrupted before anything was changed."""


@dataclass(frozen=True, slots=True)
class Checked:
    """How the check of a merge ended."""

    command: str
    exit_code: int | None
    output: str
    timed_out: bool = False
    stopped: bool = False
    """It was interrupted."""

    @property
    def passed(self) -> bool:
        """Whether the merge may go on."""
        return self.exit_code == 0 and not self.timed_out and not self.stopped


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did, or what stood in its way."""

    status: MergeStatus
    source: str
    """Name of the agent whose files were merged."""
    target: str
    """Name of the agent whose own tree got them; "" if it is the session's directory."""
    down: bool = False
    """Whether they came from the workspace that the target was made from."""
    files: tuple[FileChange, ...] = ()
    """What the merge changes in the target."""
    conflicts: tuple[Conflict, ...] = ()
    """The files that conflict. After a merge from the parent they have conflict markers, or one of both versions."""
    owner: str = ""
    """Name of the agent that was told to solve the conflicts."""
    differs: tuple[str, ...] = ()
    """Files of the target that are not as expected, if that is why nothing was written: most were changed meanwhile."""
    absent: tuple[str, ...] = ()
    """Those of them that a sparse checkout leaves out."""
    in_the_way: tuple[str, ...] = ()
    """Those of them that no snapshot has, where a new file is to be."""
    check: Checked | None = None
    diff: str = ""
    """What a preview would change, as a bounded unified diff."""
    left_out: tuple[str, ...] = ()
    """Files of the source that no snapshot holds, because they are too large or belong to another repository."""
    note: str = ""
    """What else the caller should know, in words."""
    asked_by: str = ""
    """Name of the agent whose call it was; "" if a person asked."""
    id: int | None = None
    """The merge's row, if it has one."""
    plan: str = ""
    """Stands for what a preview shows: a yes holds for this only."""

    @property
    def marked(self) -> tuple[str, ...]:
        """The conflicts that conflict markers show."""
        return tuple(one.path for one in self.conflicts if one.both)

    @property
    def unmarked(self) -> tuple[str, ...]:
        """The conflicts that can have no markers: a file is no text, or one side has removed it."""
        return tuple(one.path for one in self.conflicts if not one.both)


class UndoStatus(StrEnum):
    """How an undo or a redo ended."""

    DONE = "done"
    NOTHING = "nothing"
    """There was nothing to undo or redo."""
    REFUSED = "refused"
    """Other agents or people have changed some of the files since: nothing was changed."""
    PREVIEW = "preview"


@dataclass(frozen=True, slots=True)
class Later:
    """A file that cannot be taken back, because it was changed again since."""

    path: str
    by: str
    """Name of the agent that changed it; "" if it was a person or a program."""


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo, a redo or a rewind did, or what stood in its way."""

    status: UndoStatus
    agent: str
    """Its name."""
    row: int | None = None
    """The row that the conversation ends with now; None if the conversation is as it was."""
    files: tuple[FileChange, ...] = ()
    """What it changed in the agent's workspace, or would change if the status is ``refused`` or ``preview``."""
    by_command: tuple[str, ...] = ()
    """Those of them that changed while a command ran in a directory that others use too: what they saved there in that
    time goes with it."""
    refused: tuple[Later, ...] = ()
    """Files that were changed since. The others can be taken back alone, by naming them."""
    merges: tuple[str, ...] = ()
    """Agents whose merges were undone; they can be merged again."""
    note: str = ""
    plan: str = ""
    """Stands for what a preview shows: a yes holds for this only."""


class Fault(StrEnum):
    """What can be wrong between rows and directories."""

    NO_DIRECTORY = "no_directory"
    """A ready workspace of an agent's own has no directory."""
    NO_ROW = "no_row"
    """A directory of ours belongs to no workspace that this database knows."""
    LATE = "late"
    """A tree was planned long ago and was never made."""
    LEFT = "left"
    """A workspace that nobody uses, or whose removal was cut short, still has its directory."""
    MOVED = "moved"
    """The repository is no longer where the workspace's row says."""
    NO_MARKER = "no_marker"
    """A workspace's directory lacks the marker that we put beside it."""
    UNFINISHED = "unfinished"
    """A merge was cut short."""
    NO_TREE = "no_tree"
    """A row names a snapshot that the repository no longer has."""
    STRAY_REF = "stray_ref"
    """A ref of ours belongs to no snapshot."""
    CHECK_LEFT = "check_left"
    """The directory of a check that was cut short."""


@dataclass(frozen=True, slots=True)
class TreeFinding:
    """One fault, and what can be done about it."""

    fault: Fault
    subject: str
    """Id of the workspace or the merge, or the path or ref."""
    words: str
    """The fault, as one sentence."""
    remedy: str
    """What ``mend`` does about it; "" if only a person can do something."""
    advice: str = ""
    """What a person can do."""


@dataclass(frozen=True, slots=True)
class Mended:
    """How a finding was treated."""

    finding: TreeFinding
    done: bool
    words: str
    """The treatment, or the reason why there was none."""
