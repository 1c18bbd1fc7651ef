"""What the functions of this package return. Texts are foreign: clean them before they reach rows or a screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["added", "changed", "removed"]
"""What happened to a file between two trees. A file that only became executable, or a link, is changed."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs between two trees."""

    path: str
    status: Status
    added: int
    """Lines; 0 if binary."""
    removed: int
    binary: bool = False


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """The files of a workspace at one moment."""

    tree: str
    """The id of a Git tree: the repository's whole tree, also if the workspace's root is a folder of it."""
    before: str | None
    changes: tuple[FileChange, ...]
    """What differs from ``before``, by path; empty if there is no ``before``."""
    left_out: tuple[str, ...] = ()
    """Files that are too large or unreadable, nested repositories and submodules, sorted. A folder ends with ``/``."""
    unmade: TreeSnapshot | None = None
    """If it was asked for: what came to light between ``before`` and this tree, though nobody has made it since."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: all of it, or nothing because some files were changed by somebody else."""

    written: tuple[str, ...]
    """Paths that were written or removed."""
    refused: tuple[str, ...] = ()
    """Paths whose content is neither the expected one nor the new one. If there is any, nothing was written."""
    absent: tuple[str, ...] = ()
    """Those of them that a sparse checkout leaves out of the directory."""
    in_the_way: tuple[str, ...] = ()
    """Those of them that are in no snapshot, such as ignored files, where a new file is to be."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that both sides changed in ways that do not fit together."""

    path: str
    ours: str | None
    """The target's text; None if the file was removed there, or is no text."""
    theirs: str | None
    """The source's text, likewise."""
    both: str
    """The text with conflict markers; empty if there is none: binary files, links, or one side removed it."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge of two trees, made in memory."""

    tree: str | None
    """The result. None if there are conflicts and no markers were asked for."""
    conflicts: tuple[Conflict, ...]
    changes: tuple[FileChange, ...]
    """What the merge changes in ``ours``, by path; empty if there is no result."""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The difference of one file between two trees."""

    path: str
    status: Status
    added: int
    removed: int
    text: str
    """A unified diff, with the headers that ``git apply`` reads. Empty if the file is binary.

    Bytes that are no UTF-8 are surrogate-escaped, so that it can be applied: clean it before it goes elsewhere."""
    binary: bool = False
    clipped: bool = False
    """Whether the end of the text is missing because it was too long."""


@dataclass(frozen=True, slots=True)
class BlameLine:
    """A line of a file, and the version that brought it."""

    text: str
    label: str | None
    """The first version that has the line; None if the oldest version had it already."""
