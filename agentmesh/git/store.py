"""A workspace's snapshots: take them, name them, go back to one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from agentmesh.git.facts import Restored, Snapshot
from agentmesh.git.place import Place

MAX_FILE = 10 * 1024 * 1024
"""A new file with more bytes is left out of snapshots."""


class Store:
    """The snapshots of one workspace.

    ``folder`` is the workspace's own, ``<data>/trees/<workspace id>``; it is made when it is first needed and holds
    ``lock``, ``index`` and ``workspace.json``. Keep a Store per workspace: it knows what it has looked at. Threads and
    processes may use one workspace at once; each call holds the workspace's lock. A call that does not get the lock
    raises TreeBusy; one that cannot read or write raises TreeError, and the files and objects are as before.
    """

    def __init__(self, place: Place, folder: Path, *, max_file: int = MAX_FILE) -> None:
        self.place = place
        self.folder = folder
        self.max_file = max_file

    def take(self, before: str | None, ref: str | None, paths: Collection[str] | None = None) -> Snapshot:
        """Take a snapshot: write objects, then ``ref``, a full name below ``refs/agentmesh/``.

        ``before`` is the snapshot to compare with; None for the first one, whose changes are not listed. ``paths`` None
        looks at all files. Else only at these, and all others are as in ``before``, which then must be given. A ref that
        exists is moved. If nothing changed, the tree is ``before`` and the ref is written all the same.
        """
        raise NotImplementedError(before, ref, paths)

    def restore(self, tree: str, expected: str, paths: Collection[str] | None = None) -> Restored:
        """Make files what they are in ``tree``: those that differ from ``expected``, of ``paths`` if given.

        A file is written only if it is what ``expected`` has, or what ``tree`` has already. If another one is met,
        nothing is written and it is refused by name. Folders that become empty are removed. A call that was cut in two
        is finished by the same call. A path of ``paths`` may be a folder.
        """
        raise NotImplementedError(tree, expected, paths)

    def has(self, tree: str) -> bool:
        """Return whether the repository has this tree."""
        raise NotImplementedError(tree)

    def keep(self, ref: str, tree: str) -> None:
        """Name a tree, so that ``git gc`` keeps it and its files."""
        raise NotImplementedError(ref, tree)

    def free(self, refs: Iterable[str]) -> None:
        """Remove refs of ours, those that are there; the next ``git gc`` may then remove what only they reach."""
        raise NotImplementedError(refs)

    def refs(self, below: str) -> dict[str, str]:
        """Return our refs below a name, such as ``refs/agentmesh/<session>/``, with their trees."""
        raise NotImplementedError(below)
