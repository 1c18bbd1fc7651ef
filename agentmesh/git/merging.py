"""Merges of trees, in memory: no file and no ref changes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pygit2
from pygit2.enums import DiffOption, FileMode, MergeFlag

from agentmesh.git import tree_objects
from agentmesh.git.comparing import changes_in
from agentmesh.git.facts import Conflict, Merged
from agentmesh.git.opening import repository_of, told
from agentmesh.git.rule_files import require_files_above
from agentmesh.git.tree_objects import LINK, SUBMODULE, Entry
from agentmesh.git.where import Place

_TEXT: Final = 1024 * 1024
"""Bytes of a file that is shown in a conflict."""


class _Sides(NamedTuple):
    """The versions of a file that do not fit together; None if a side has no such file."""

    base: pygit2.IndexEntry | None
    ours: pygit2.IndexEntry | None
    theirs: pygit2.IndexEntry | None

    @property
    def path(self) -> str:
        return next(os.fspath(each.path) for each in (self.ours, self.theirs, self.base) if each is not None)


def merge(
    place: Place,
    base: str,
    ours: str,
    theirs: str,
    *,
    markers: bool = False,
    names: tuple[str, str] = ("ours", "theirs"),
) -> Merged:
    """Merge two trees that came from ``base``.

    With conflicts the result has no tree, unless ``markers`` asks for one that has both sides in its files, between
    conflict markers with ``names``. If the file is binary or a link, ours stays. A file that one side removed and the
    other changed is there as it was changed.
    """
    with told("merge two snapshots"):
        repository = repository_of(place)
        simple = _apart(repository, base, ours, theirs)
        if simple is not None:
            tree = tree_objects.edited(repository, *simple)
            return Merged(tree, (), changes_in(repository, place, ours, tree))
        index, sides, conflicts = _met(repository, place, (base, ours, theirs), names)
        if conflicts and not markers:
            return Merged(None, conflicts, ())
        for each, conflict in zip(sides, conflicts, strict=True):
            _settle(repository, index, each, conflict, names)
        tree = str(index.write_tree(repository))
        return Merged(tree, conflicts, changes_in(repository, place, ours, tree))


def conflicts(
    place: Place, base: str, ours: str, theirs: str, *, names: tuple[str, str] = ("ours", "theirs")
) -> tuple[Conflict, ...]:
    """Return the conflicts that a merge would have. Writes nothing, not even objects, so it is quicker than a merge."""
    with told("merge two snapshots"):
        repository = repository_of(place)
        if _apart(repository, base, ours, theirs) is not None:
            return ()
        return _met(repository, place, (base, ours, theirs), names)[2]


def _met(
    repository: pygit2.Repository, place: Place, trees: tuple[str, str, str], names: tuple[str, str]
) -> tuple[pygit2.Index, list[_Sides], tuple[Conflict, ...]]:
    """Merge by libgit2, in memory."""
    base, ours, theirs = trees
    mine, other = _edits(repository, base, ours), _edits(repository, base, theirs)
    require_files_above(repository.workdir, itertools.chain(mine, other))
    clashes = tuple(_clashes(mine, other))
    index = repository.merge_trees(*trees)
    if clashes or _misses_some(index, mine, other):
        index = repository.merge_trees(*trees, flags=MergeFlag(0))  # finds no renames
    sides = [_Sides(*each) for each in index.conflicts or ()]
    known = {each.path for each in sides}
    sides += [_alone(index, each) for each in clashes if each.path not in known]
    return index, sides, tuple(_conflict(repository, place, each, names) for each in sides)


def _misses_some(index: pygit2.Index, mine: Mapping[str, Entry | None], other: Mapping[str, Entry | None]) -> bool:
    """Return whether a file that one side wrote has no place, because the other has moved another one onto it."""
    for sides in (_Sides(*each) for each in index.conflicts or ()):
        path = sides.path
        if (mine.get(path) and not sides.ours) or (other.get(path) and not sides.theirs):
            return True
        folders = (path[:at] for at, sign in enumerate(path) if sign == "/")
        if (sides.ours or sides.theirs) and any(_is_file(index, each) for each in folders):
            return True
    return False


def _is_file(index: pygit2.Index, path: str) -> bool:
    """Return whether a path is a file without conflicts."""
    try:
        index[path]
    except KeyError:
        return False
    return True


def _clashes(mine: Mapping[str, Entry | None], other: Mapping[str, Entry | None]) -> Iterator[_Sides]:
    """Yield files that one side has put in a folder's place while the other has written in it."""
    for is_ours, some, others in ((True, mine, other), (False, other, mine)):
        folders = {path[:at] for path, new in others.items() if new for at, sign in enumerate(path) if sign == "/"}
        for path in sorted(folders & some.keys()):
            entry = some[path]
            if entry is not None:
                file = pygit2.IndexEntry(path, pygit2.Oid(raw=entry.id), FileMode(entry.mode))
                yield _Sides(None, file if is_ours else None, None if is_ours else file)


def _alone(index: pygit2.Index, clash: _Sides) -> _Sides:
    """Take a file out of the index that libgit2 has there beside a folder: the tree of both loses the file."""
    if clash.path in index:
        index.remove(clash.path)
    return clash


def _apart(
    repository: pygit2.Repository, base: str, ours: str, theirs: str
) -> tuple[str, Mapping[str, Entry | None]] | None:
    """Return a tree and the edits that make the result of it, if the sides changed different files; None if they met.

    This costs what the changes cost, not what the repository has.
    """
    if base == theirs or ours == theirs:
        return ours, {}
    if base == ours:
        return theirs, {}
    mine, other = _edits(repository, base, ours), _edits(repository, base, theirs)
    if _touches(mine, other) or _touches(other, mine):
        return None
    return ours, other


def _edits(repository: pygit2.Repository, before: str, after: str) -> dict[str, Entry | None]:
    old, new = repository[before].peel(pygit2.Tree), repository[after].peel(pygit2.Tree)
    return {
        os.fsdecode(delta.new_file.raw_path): Entry(int(delta.new_file.mode), delta.new_file.id.raw)
        if delta.new_file.mode
        else None
        for delta in old.diff_to_tree(new, flags=DiffOption.INCLUDE_TYPECHANGE).deltas
    }


def _touches(some: Mapping[str, object], others: Mapping[str, object]) -> bool:
    """Return whether a path of ``some``, or a folder above one, is in ``others``."""
    for path in some:
        at = len(path)
        while at > 0:
            if path[:at] in others:
                return True
            at = path.rfind("/", 0, at)
    return False


def _conflict(repository: pygit2.Repository, place: Place, sides: _Sides, names: tuple[str, str]) -> Conflict:
    return Conflict(
        path=place.outward(sides.path),
        ours=_text(repository, sides.ours),
        theirs=_text(repository, sides.theirs),
        both=_both(repository, sides, names),
    )


def _both(repository: pygit2.Repository, sides: _Sides, names: tuple[str, str]) -> str:
    """Return the file with conflict markers; empty if it cannot have any."""
    if sides.ours is None or sides.theirs is None:
        return ""
    if {LINK, SUBMODULE} & {int(sides.ours.mode), int(sides.theirs.mode)}:
        return ""
    if any(isinstance(blob, pygit2.Blob) and blob.is_binary for blob in map(repository.get, _ids(sides))):
        return ""
    try:
        merged = repository.merge_file_from_index(sides.base, sides.ours, sides.theirs)
    except (UnicodeDecodeError, pygit2.GitError):
        return ""
    text = merged.contents
    for sign, entry, name in (("<<<<<<<", sides.ours, names[0]), (">>>>>>>", sides.theirs, names[1])):
        if repository[entry.id].peel(pygit2.Blob).size == 0:  # then libgit2 writes no name
            text = text.replace(f"{sign}\n", f"{sign} {name}\n")
        text = text.replace(f"{sign} {os.fspath(entry.path)}\n", f"{sign} {name}\n")
    return text


def _ids(sides: _Sides) -> list[pygit2.Oid]:
    return [entry.id for entry in sides if entry is not None]


def _text(repository: pygit2.Repository, entry: pygit2.IndexEntry | None) -> str | None:
    """Return a file's text; None if it is binary, too large, or not there."""
    blob = repository.get(entry.id) if entry is not None else None
    if not isinstance(blob, pygit2.Blob) or blob.is_binary or blob.size > _TEXT:
        return None
    return blob.data.decode(errors="replace")


def _settle(
    repository: pygit2.Repository, index: pygit2.Index, sides: _Sides, conflict: Conflict, names: tuple[str, str]
) -> None:
    """Put one version of a conflicting file in the index."""
    for entry in sides:
        if entry is not None and index.conflicts is not None and entry.path in index.conflicts:
            del index.conflicts[entry.path]
    kept = sides.ours or sides.theirs
    if kept is None:
        return
    path = _free_path(index, sides.path, names[0] if sides.ours is not None else names[1])
    blob = repository.create_blob(conflict.both.encode()) if conflict.both else kept.id
    index.add(pygit2.IndexEntry(path, blob, kept.mode))


def _free_path(index: pygit2.Index, path: str, name: str) -> str:
    """Return the path, or one beside it if a folder has its place in the result."""
    is_folder = any(os.fspath(entry.path).startswith(f"{path}/") for entry in index)
    if not is_folder:
        return path
    beside = (f"{path}~{name}{more}" for more in itertools.chain([""], (f"_{n}" for n in itertools.count())))
    return next(each for each in beside if each not in index)
