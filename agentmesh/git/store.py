"""A workspace's snapshots: take them, name them, go back to one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

import pygit2

from agentmesh.domain.errors import TreeBusy, TreeError
from agentmesh.domain.log import logger
from agentmesh.git import comparing, marker, refs, restoring, unfinished
from agentmesh.git.facts import Restored, TreeSnapshot
from agentmesh.git.fixed_files import require_files, require_named_files
from agentmesh.git.lock import locked
from agentmesh.git.looking import Seen, WorkspaceIndex, at_paths
from agentmesh.git.opening import is_full, told, view_of
from agentmesh.git.rule_files import RuleFiles, require_files_above
from agentmesh.git.where import Place

LOG = logger(__name__)
MAX_FILE: Final = 10 * 1024 * 1024
"""A new file with more bytes is left out of snapshots."""


class Store:
    """The snapshots of one workspace.

    ``folder`` is the workspace's own, ``<data>/trees/<workspace id>``; it is made when it is first needed. It holds:

    - ``lock``, and ``workspace.json``, which says whose it is; a workspace's own tree is in it too.
    - ``view/``, as which libgit2 opens the repository, with ``index`` and ``settings``. Beside them are notes about
      the files: ``looked``, ``skipped.json``, ``private.json``, and ``bytes.json`` with ``bytes/``.
    - ``writing.json`` and ``unfinished.json`` while files are put back, or if that was cut short.

    Keep a Store per workspace: it knows what it has looked at. Threads and processes may use one workspace at once;
    each call holds the workspace's lock. A call that does not get the lock raises TreeBusy; one that cannot read or
    write raises TreeError, and the files are as before.

    ``is_stored`` says whether a row names a ref. It is asked after ``going_back`` was cut short.
    """

    def __init__(
        self,
        place: Place,
        folder: Path,
        *,
        max_file: int = MAX_FILE,
        is_stored: Callable[[str], bool] = lambda _ref: False,
    ) -> None:
        self.place = place
        self.folder = folder
        self.max_file = max_file
        self._alone = threading.RLock()
        self._depth = 0
        self._is_stored = is_stored
        self._goes_back = False
        self._opened: pygit2.Repository | None = None
        self._look: WorkspaceIndex | None = None
        self._used_at = time.monotonic()
        self._rules = RuleFiles(place.top)

    def take(
        self, before: str | None, ref: str | None, paths: Collection[str] | None = None, *, apart: bool = False
    ) -> TreeSnapshot:
        """Take a snapshot: write objects, then ``ref``, a full name below ``refs/agentmesh/``.

        ``before`` is the snapshot to compare with; None for the first one, whose changes are not listed. ``paths`` None
        looks at all files. Else only at these, and all others are as in ``before``, which then must be given. A ref
        that exists is moved. If nothing changed, the tree is ``before`` and the ref is still written.

        ``apart``: what nobody has made since the last look comes in a snapshot of its own, before this one. Such files
        were there and in no snapshot: Git ignored them, or their folder was a repository, or they were too large.
        """
        with self._held("take a snapshot", made=True) as view:
            seen = self._seen(view, before, paths)
            if ref is not None:
                refs.write(view, ref, seen.tree)
            left_out = tuple(sorted(self.place.outward(path) for path in seen.left_out))
            unmade = None
            if apart and before is not None and seen.unmade is not None:
                brought = comparing.changes_in(view, self.place, before, seen.unmade)
                unmade, before = TreeSnapshot(seen.unmade, before, brought), seen.unmade
            changed = () if before is None else comparing.changes_in(view, self.place, before, seen.tree)
            return TreeSnapshot(tree=seen.tree, before=before, changes=changed, left_out=left_out, unmade=unmade)

    def restore(self, tree: str, expected: str, paths: Collection[str] | None = None) -> Restored:
        """Give files their content in ``tree``: all files that differ from ``expected``, or only these ``paths``.

        A file is written only if it is what ``expected`` has, or what ``tree`` has already. If another one is met,
        nothing is written and it is refused by name. Folders that become empty are removed. A call that was cut in two
        is finished by the same call. A path of ``paths`` may be a folder.
        """
        with self._held("write files", made=True) as view:
            return restoring.restore(view, self.place, self.folder, tree, expected, paths)

    @contextmanager
    def going_back(self, ref: str, tree: str, expected: str) -> Iterator[Restored]:
        """Restore a tree that ``ref`` names from now on, and yield how that went: the block stores its row.

        It is all or nothing. If the block raises and its row is not stored, what was written is taken back: all but
        what somebody has changed since. If the process dies, or nobody can say whether the row is stored, the next
        call of any process does it.
        """
        with self.held():
            try:
                with self._held("write files", made=True) as view:
                    unfinished.write(self.folder, unfinished.Unfinished(ref, tree, expected))
                    self._goes_back = True
                    refs.write(view, ref, tree)
                    restored = restoring.restore(view, self.place, self.folder, tree, expected, None)
                yield restored
            except BaseException:
                self._goes_back = False
                with suppress(Exception):  # the block's error counts; the next call takes it back
                    self.settle()
                raise
            self._goes_back = False
            if restored.refused:
                self.free([ref])
            unfinished.remove(self.folder)

    def settle(self) -> None:
        """Take back what a process that died in ``going_back`` has written, unless its row was stored."""
        with self._held("take back what was cut short", made=True):
            pass

    def take_back(self, tree: str, expected: str) -> tuple[str, ...]:
        """Undo what a restore has written, even if it was cut short; return the files that somebody changed since."""
        with self._held("write files", made=True) as view:
            return restoring.take_back(view, self.place, self.folder, tree, expected)

    def has(self, tree: str) -> bool:
        """Return whether the repository has this tree."""
        with self._held("read a snapshot") as view:
            return tree in view

    def keep(self, ref: str, tree: str) -> None:
        """Name a tree, so that ``git gc`` keeps it and its files."""
        with self._held("name a snapshot") as view:
            refs.write(view, ref, tree)

    def free(self, names: Iterable[str]) -> None:
        """Remove refs of ours, those that are there; the next ``git gc`` may then remove what only they reach."""
        with self._held("free snapshots") as view:
            refs.remove(view, names)

    def refs(self, below: str) -> dict[str, str]:
        """Return our refs below a name, such as ``refs/agentmesh/<session>/``, with their trees."""
        with self._held("read the names of snapshots") as view:
            return refs.below(view, below)

    def _seen(self, view: pygit2.Repository, before: str | None, paths: Collection[str] | None) -> Seen:
        if before is not None and before not in view:
            hint = "A `git gc` removed it, or the repository was made anew: agentmesh workspaces --repair."
            raise TreeError(f"The snapshot {before} is no longer in the repository.", hint=hint)
        if paths is not None and before is not None:
            inner = [self.place.inward(path) for path in paths]
            require_files_above(os.fspath(self.place.top), inner)
            seen = self._seen_at(view, before, inner)
            if seen is not None:
                return seen
        self._rules.require_files()
        if self._look is None:
            if marker.workspace(self.folder) is None:
                marker.write(self.folder, self.folder.name, self.place, ())
            self._look = WorkspaceIndex.begin(self.place, self.folder, max_file=self.max_file)
        return self._look.everywhere(before)

    def _seen_at(self, view: pygit2.Repository, before: str, paths: Collection[str]) -> Seen | None:
        """Look at some files only; None if that is not enough, or one cannot be read."""
        try:
            return at_paths(self.place, view, before, paths, self.max_file)
        except (OSError, pygit2.GitError) as error:
            if is_full(error):
                raise
            return None

    @contextmanager
    def held(self, *, wait: bool = True, made: bool = True) -> Iterator[None]:
        """Hold the workspace's lock over several calls of this thread; without ``wait`` raise TreeBusy at once.

        ``made``: raise TreeError if it is a tree that is not there, whose files are not to be taken for deleted ones.
        """
        if not self._alone.acquire(blocking=wait):
            raise TreeBusy(f"Another thread works with the files of {self.folder.name}.", hint="Try again.")
        try:
            with nullcontext() if self._depth else self._locked(wait=wait, made=made):
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
        finally:
            self._alone.release()

    def rest(self, seconds: float) -> None:
        """Drop what the last look has left in memory, if no thread has needed it for so long; the folder has it too."""
        if not self._alone.acquire(blocking=False):
            return
        try:
            if not self._depth and time.monotonic() - self._used_at >= seconds:
                self._opened = self._look = None
        finally:
            self._alone.release()

    @contextmanager
    def _locked(self, *, wait: bool, made: bool) -> Iterator[None]:
        must_be_there = made and self.place.top.parent == self.folder.resolve()
        with ExitStack() as stack:
            with told("lock the files"):
                try:
                    how = {} if wait else {"patience": 0.0}
                    stack.enter_context(locked(self.folder, make=not must_be_there, **how))
                except FileNotFoundError:
                    raise self._gone() from None
            if must_be_there and not self.place.top.is_dir():
                raise self._gone()
            yield

    def _gone(self) -> TreeError:
        hint = "agentmesh workspaces --repair says what is left."
        return TreeError(f"The directory {self.place.top} is gone.", hint=hint)

    @contextmanager
    def _held(self, what: str, *, made: bool = False) -> Iterator[pygit2.Repository]:
        """Hold the lock, remove what a dead process left, and give the view."""
        with told(what), self.held(made=made):
            restoring.clean_up(self.place, self.folder)
            require_files(self.place)
            if self._opened is None:
                self._opened = view_of(self.place, self.folder)
            require_named_files(self._opened)
            try:
                if made:
                    self._settle(self._opened)
                yield self._opened
            except BaseException:
                # What is in memory may be half of a change: the next call begins with what is on disk.
                self._opened = self._look = None
                raise
            finally:
                self._used_at = time.monotonic()

    def _settle(self, view: pygit2.Repository) -> None:
        left = None if self._goes_back else unfinished.read(self.folder)
        if left is None:
            return
        if not self._is_stored(left.ref):
            if left.tree in view and left.expected in view:  # else nobody can tell any more what was written
                restoring.take_back(view, self.place, self.folder, left.tree, left.expected)
            refs.remove(view, [left.ref])
            LOG.warning("an undo or redo in %s was not finished: what it wrote is taken back", self.place.root)
        unfinished.remove(self.folder)
