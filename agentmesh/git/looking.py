"""What the files of a workspace are now, as a tree. An index in memory knows the files that did not change."""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pygit2
from pygit2.enums import DeltaStatus, DiffOption, FileMode

from agentmesh.domain.errors import TreeError
from agentmesh.git import conversions, disk_bytes, earlier, marker, opening, private, tree_objects
from agentmesh.git.opening import VIEW, view_of
from agentmesh.git.rule_files import read_regular
from agentmesh.git.seed import SKIPPED, copy_index, read_skipped
from agentmesh.git.tree_objects import Entry
from agentmesh.git.where import Place

_LOOK: Final = (
    DiffOption.INCLUDE_UNTRACKED
    | DiffOption.RECURSE_UNTRACKED_DIRS
    | DiffOption.INCLUDE_TYPECHANGE
    | DiffOption.IGNORE_SUBMODULES
    | DiffOption.INCLUDE_UNREADABLE
)
_TRIES: Final = 20
"""A file that changes while it is read is read again."""
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Nothing is at a path: the last is of a link in a folder's place that leads to itself."""
_OFTEN: Final = 200
"""So many files change in memory before the index is written: a file is read again, by others, until then."""


class Seen(NamedTuple):
    """What a look found."""

    tree: str
    left_out: set[str]
    """Relative to the top."""
    unmade: str | None = None
    """The tree before, with new files that nobody has made since the last look: they only come to light now."""


class WorkspaceIndex:
    """An index of a workspace in memory, with the tree that it stands for."""

    @classmethod
    def begin(cls, place: Place, folder: Path, *, max_file: int) -> WorkspaceIndex:
        """Open the index of a workspace. One that cannot be read is made again."""
        beside = marker.beside(folder)
        try:
            return cls(place, view_of(place, folder), max_file=max_file, beside=beside)
        except (pygit2.GitError, OSError):
            (folder / VIEW / "index").unlink(missing_ok=True)
        return cls(place, view_of(place, folder), max_file=max_file, beside=beside)

    def __init__(self, place: Place, view: pygit2.Repository, *, max_file: int, beside: Collection[str]) -> None:
        self._place = place
        self._view = view
        self._max_file = max_file
        self._beside = tuple(beside)
        self._index = view.index
        self._unwritten = 0
        self._skipped_file = Path(view.path) / SKIPPED
        self._tree = self._loaded()
        self._skipped = read_skipped(Path(view.path))
        self._looked_file = Path(view.path) / "looked"
        self._large: set[str] = set()
        if not private.is_begun(Path(view.path)):
            disk_bytes.note_first(place, view, self._index, tree_objects.files(view, self._tree))
            private.note(Path(view.path), place.top, tree_objects.files(view, self._tree))

    def everywhere(self, before: str | None) -> Seen:
        """Look at all files. Files that ``before`` has are taken whatever their size and whether ignored."""
        if before is not None and before != self._tree:
            self._become(before)
        edits: dict[str, Entry | None] = {}
        left_out: set[str] = set()
        begun_with, last, now = self._tree, self._looked_at(), time.time_ns()
        deltas = self._differences(left_out)
        for delta in deltas:
            self._take(delta, edits, left_out)
        unmade = self._unmade(deltas, edits, last)
        with_unmade = tree_objects.edited(self._view, self._tree, unmade) if unmade else None
        tree = tree_objects.edited(self._view, self._tree, edits)
        _note_files(self._place, self._view, edits)
        self._note(tree, len(edits))
        self._large = {path for path in left_out if not path.endswith("/")}
        self._looked_file.write_text(f"{begun_with} {last or 0} {tree} {now}\n")
        return Seen(tree, left_out | self._submodules(), with_unmade)

    def _unmade(
        self, deltas: Collection[pygit2.DiffDelta], edits: Mapping[str, Entry | None], last: int | None
    ) -> dict[str, Entry | None]:
        """Return those of the new files that were there at the last look already, so that nobody has made them since.

        One with the content of a file that has gone or changed was moved by somebody.
        """
        # A file that was renamed and then written is told from one that somebody had there only if none has gone.
        has_lost = any(each.status == DeltaStatus.DELETED for each in deltas)
        was_there = earlier.is_older if has_lost else earlier.was_there

        def is_older(path: str) -> bool:
            file = self._place.top / path
            if path in self._large or was_there(file, last):
                return True
            is_of_snapshot = path[: path.rfind(".")] in edits  # what it would have been packed from
            return not is_of_snapshot and earlier.is_packed(file, last)

        lost = {each.old_file.id.raw for each in deltas if each.status != DeltaStatus.UNTRACKED}
        new = (os.fsdecode(each.new_file.raw_path) for each in deltas if each.status == DeltaStatus.UNTRACKED)
        old = {path: edits[path] for path in new if path in edits and is_older(path)}
        return {path: entry for path, entry in old.items() if not (entry and entry.id in lost)}

    def _looked_at(self) -> int | None:
        """Return when the last look at all files began, by any process, in nanoseconds.

        If the tree is the one that that look began with, what it has found was never stored: its worker died. Then the
        look before it is the last.
        """
        try:
            begun_with, before, found, at = self._looked_file.read_text().split()
            return (int(before) or None) if begun_with == self._tree != found else int(at)
        except ValueError:  # the file of an earlier release is empty: only its time counts
            return self._looked_file.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def _differences(self, left_out: set[str]) -> list[pygit2.DiffDelta]:
        """Compare the index with the disk; again if a file went in the middle, or cannot be read."""
        hidden: dict[str, pygit2.IndexEntry] = {}
        try:
            for left in reversed(range(_TRIES)):
                try:
                    found = list(self._index.diff_to_workdir(_LOOK).deltas)
                except (KeyError, OSError, pygit2.GitError) as error:
                    if not left or opening.is_full(error):
                        raise
                    if opening.is_denied(error):
                        hidden |= self._without_unreadable()
                else:
                    left_out.update(hidden)
                    return [delta for delta in found if os.fsdecode(delta.new_file.raw_path) not in hidden]
        finally:
            for entry in hidden.values():
                self._index.add(entry)
        raise AssertionError

    def _without_unreadable(self) -> dict[str, pygit2.IndexEntry]:
        """Remove the files that cannot be read from the index, and return their entries.

        libgit2 reads a file whose time has changed. If it may not, it says nothing about any other file.
        """
        files = (entry for entry in self._index if entry.mode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE))
        found = {os.fspath(entry.path): entry for entry in files if not _is_readable(self._place.top / entry.path)}
        for path in found:
            self._index.remove(path)
        return found

    def _take(self, delta: pygit2.DiffDelta, edits: dict[str, Entry | None], left_out: set[str]) -> None:
        path = os.fsdecode(delta.new_file.raw_path)
        is_new = delta.status == DeltaStatus.UNTRACKED
        if is_new and self._is_beside(path):
            return
        if path.endswith("/") or (delta.old_file.mode == FileMode.COMMIT and not is_new):
            left_out.add(path if path.endswith("/") else f"{path}/")
            return
        try:
            size = size_of(self._place.top, path)
        except OSError:
            left_out.add(path)
            return
        if size is None:
            if not is_new and path not in self._skipped:
                self._drop(path)
                edits[path] = None
        elif is_new and size > self._max_file:
            left_out.add(path)
        else:
            entry = self._added(path)
            if entry is None:
                left_out.add(path)
            else:
                edits[path] = entry
                self._unskip(path)

    def _added(self, path: str) -> Entry | None:
        """Put the file on disk into the index and return its entry; None if it cannot be read, or is gone."""
        is_raw = conversions.is_as_on_disk(self._view, path)
        for _ in range(_TRIES):
            if is_raw and self._add_as_it_is(path):
                break
            try:
                self._index.add(path)
            except (pygit2.GitError, OSError) as error:
                if opening.is_full(error):
                    raise
                continue
            break
        else:
            return None
        found = self._index[path]
        return Entry(int(found.mode), found.id.raw)

    def _add_as_it_is(self, path: str) -> bool:
        """Put a file into the index whose ends of lines are not converted, if it is one."""
        full = self._place.top / path
        try:
            mode, data = full.lstat().st_mode, read_regular(full)
        except OSError:
            return False
        if stat.S_ISLNK(mode):
            return False
        kind = tree_objects.PROGRAM if mode & 0o100 else tree_objects.FILE
        if not conversions.has_modes(self._view) and path in self._index:
            kind = int(self._index[path].mode)
        self._index.add(pygit2.IndexEntry(path, self._view.create_blob(data), FileMode(kind)))
        return True

    def _become(self, before: str) -> None:
        """Make the index stand for another tree; what differs is read from disk at the next look."""
        old, new = self._view[self._tree].peel(pygit2.Tree), self._view[before].peel(pygit2.Tree)
        for delta in old.diff_to_tree(new, flags=DiffOption.INCLUDE_TYPECHANGE).deltas:
            path = os.fsdecode(delta.new_file.raw_path)
            if delta.status == DeltaStatus.DELETED:
                self._drop(path)
            else:
                self._index.add(pygit2.IndexEntry(path, delta.new_file.id, delta.new_file.mode))
        self._tree = before

    def _unskip(self, path: str) -> None:
        """Note that a file is there, so that it can be removed."""
        if path in self._skipped:
            self._skipped.remove(path)
            self._skipped_file.write_text(json.dumps(sorted(self._skipped)))

    def _drop(self, path: str) -> None:
        """Remove a path from the index, unless a folder or file that took its place did."""
        if path in self._index:
            self._index.remove(path)

    def _note(self, tree: str, changed: int) -> None:
        self._tree = tree
        self._unwritten += changed
        if self._unwritten > _OFTEN:
            self.write()

    def write(self) -> None:
        """Write the index, for the next process."""
        self._index.write()
        self._unwritten = 0

    def _loaded(self) -> str:
        """Read the index, or begin one; return the tree that it stands for."""
        path = Path(self._view.path) / "index"
        if path.exists():
            return str(self._index.write_tree())
        unmerged = self._begun(path)
        for name in unmerged:
            del self._index.conflicts[name]
            self._added(name)
        for name in conversions.foreign(self._view, self._index, self._place.top, self._place.common_dir):
            if not _is_there(self._place.top, name) or self._added(name) is None:
                self._index.remove(name)
        tree = str(self._index.write_tree())
        self.write()
        return tree

    def _begun(self, path: Path) -> Collection[str]:
        """Begin the index by the user's; if that cannot be read, by HEAD. Return its unmerged files."""
        copied = copy_index(self._place.git_dir / "index", path, self._place.top)
        self._index.read()
        if copied is not None:
            self._skipped_file.write_text(json.dumps(sorted(copied.skipped)))
            return copied.unmerged
        self._skipped_file.unlink(missing_ok=True)
        head = _head(self._place)
        if head is not None:
            self._index.read_tree(self._view[head])
        return ()

    def _is_beside(self, path: str) -> bool:
        """Return whether the path is one that was copied or linked into the tree beside the snapshot's files."""
        return any(path.rstrip("/") == each or path.startswith(f"{each}/") for each in self._beside)

    def _submodules(self) -> set[str]:
        if not (self._place.top / ".gitmodules").exists():
            return set()
        return {
            f"{path}/"
            for path, entry in tree_objects.files(self._view, self._tree)
            if entry.mode == tree_objects.SUBMODULE
        }


def at_paths(place: Place, view: pygit2.Repository, before: str, paths: Collection[str], max_file: int) -> Seen | None:
    """Look at some files only, relative to the top; None if that is not enough."""
    edits: dict[str, Entry | None] = {}
    left_out: set[str] = set()
    has_submodules = (place.top / ".gitmodules").exists()
    for path in paths:
        full = place.top / path
        if not _is_utf8(path) or (full.is_dir() and not full.is_symlink()):
            return None
        inside = _stranger(place.top, path) or (_submodule(view, before, path) if has_submodules else None)
        if inside is not None:
            left_out.add(inside)
            continue
        size = size_of(place.top, path)
        known = tree_objects.entry_at(view, before, path)
        if size is None:
            edits.update(_gone(view, path, known))
        elif known is None and view.path_is_ignored(path):
            continue
        elif known is None and size > max_file:
            left_out.add(path)
        else:
            edits[path] = _read(view, full, path, known)
    _note_files(place, view, edits)
    changed = {path: entry for path, entry in edits.items() if entry != tree_objects.entry_at(view, before, path)}
    return Seen(tree_objects.edited(view, before, changed), left_out)


def _note_files(place: Place, view: pygit2.Repository, edits: tree_objects.Edits) -> None:
    """Note what Git's trees do not say of the files that were read just now: their readers, and lost bytes."""
    files = [(path, entry) for path, entry in edits.items() if entry is not None]
    disk_bytes.note(view, place.top, files)
    if files and private.is_begun(Path(view.path)):  # else the first look at all files notes them
        private.note(Path(view.path), place.top, files)


def size_of(top: Path, path: str) -> int | None:
    """Return the size of a file or link; None if there is neither. No link is followed, not even on the way.

    Raise OSError if nobody can tell, as in a folder that may not be entered: that file is not gone.
    """
    full = os.path.join(top, path)
    try:
        found = os.lstat(full)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return None
    ends = [len(full) - len(path) + at for at, letter in enumerate(path) if letter == "/"]
    return None if any(os.path.islink(full[:end]) for end in ends) else found.st_size


def _is_there(top: Path, path: str) -> bool:
    """Return whether there is a file or link, as far as anybody can tell."""
    try:
        return size_of(top, path) is not None
    except OSError:
        return False


def _is_readable(full: Path) -> bool:
    """Return False if there is a file that may not be read; raise OSError if nobody can tell."""
    try:
        if stat.S_ISREG(full.lstat().st_mode):
            os.close(os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in _GONE:
            return True
        if opening.is_denied(error):
            return False
        raise
    return True


def _gone(view: pygit2.Repository, path: str, known: Entry | None) -> Iterator[tuple[str, None]]:
    if known is not None and known.mode == tree_objects.DIRECTORY:
        for name, _ in tree_objects.files(view, known.id.hex(), f"{path}/"):
            yield name, None
    elif known is not None:
        yield path, None


def _read(view: pygit2.Repository, full: Path, path: str, known: Entry | None) -> Entry:
    is_raw = conversions.is_as_on_disk(view, path) and not full.is_symlink()
    blob = view.create_blob(read_regular(full)) if is_raw else view.create_blob_fromworkdir(path)
    mode = full.lstat().st_mode
    if stat.S_ISLNK(mode):
        return Entry(tree_objects.LINK, blob.raw)
    if not conversions.has_modes(view):
        return Entry(known.mode if known is not None else tree_objects.FILE, blob.raw)
    return Entry(tree_objects.PROGRAM if mode & 0o100 else tree_objects.FILE, blob.raw)


def _stranger(top: Path, path: str) -> str | None:
    """Return the folder of another repository that a path is in."""
    at = ""
    for part in path.split("/")[:-1]:
        at = f"{at}{part}/"
        if (top / at).is_symlink():
            raise TreeError(f"The path {path!r} leads through a symbolic link.", hint="Name the file itself.")
        if os.path.lexists(top / at / ".git"):
            return at
    return None


def _submodule(view: pygit2.Repository, before: str, path: str) -> str | None:
    """Return the submodule that a path is in; in a tree of an agent's own it is an empty folder."""
    above = [path[:at] for at, sign in enumerate(path) if sign == "/"]
    known = (
        each
        for each in above
        if (entry := tree_objects.entry_at(view, before, each)) and entry.mode == tree_objects.SUBMODULE
    )
    found = next(known, None)
    return f"{found}/" if found else None


def _head(place: Place) -> str | None:
    """Return the tree of the user's HEAD."""
    repository = pygit2.Repository(os.fspath(place.git_dir))
    return None if repository.head_is_unborn else str(repository.head.peel(pygit2.Tree).id)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
