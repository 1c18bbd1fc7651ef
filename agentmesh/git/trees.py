"""Working trees of agents: made from a snapshot, removed when nothing uses them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pygit2
from pygit2.enums import CheckoutStrategy, FileMode

from agentmesh.domain.errors import TreeError
from agentmesh.git import conversions, marker, own_repository
from agentmesh.git.lock import LOCK, locked
from agentmesh.git.opening import VIEW, told, view_of
from agentmesh.git.place import TREE, own_place
from agentmesh.git.where import Place

_MAKING: Final = "making"
_ALL: Final = CheckoutStrategy.FORCE | CheckoutStrategy.RECREATE_MISSING


def make_tree(
    place: Place, tree: str, folder: Path, workspace: str, *, copy: Sequence[str] = (), link: Sequence[str] = ()
) -> Path:
    """Make ``folder/tree`` with the files of a tree and a repository of its own; return the agent's root in it.

    A tree that is there already, made for this workspace, is left as it is. One that was cut short is made again.
    ``copy`` and ``link`` are paths relative to the user's root that the tree gets as copies, or as links to the user's
    files, if they exist there and not in the tree. No snapshot has them. A tree for a check to run in is made likewise,
    in a folder of its own.
    """
    with told("make a working tree"), locked(folder):
        if not is_made(folder, workspace):
            _refuse_another(folder, workspace)
            _make(place, tree, folder, workspace, copy, link)
    return own_place(place, folder).root


def is_made(folder: Path, workspace: str) -> bool:
    """Return whether the folder has a whole tree that was made for this workspace."""
    return marker.workspace(folder) == workspace and (folder / TREE / ".git").is_dir()


def remove_tree(folder: Path, workspace: str, trees: Path) -> bool:
    """Remove a workspace's folder; return whether it is gone.

    It is removed only if it lies directly in ``trees`` and its marker names the workspace. No link is followed.
    """
    if not os.path.lexists(folder):
        return True
    if folder.is_symlink() or folder.resolve().parent != trees.resolve():
        return False
    if marker.workspace(folder) != workspace:
        return _remove_empty(folder)
    with told("remove a working tree"), locked(folder):
        for name in sorted(os.listdir(folder)):
            if name not in (marker.MARKER, LOCK):
                _remove(folder / name)
        # The marker goes last, so that a removal that was cut short can go on. A process that waits for the
        # lock finds the tree gone.
        (folder / marker.MARKER).unlink(missing_ok=True)
        return _remove_empty(folder)


def _remove_empty(folder: Path) -> bool:
    """Remove a folder without anything but a lock in it, which a removal that was cut short leaves."""
    try:
        if os.listdir(folder) == [LOCK]:
            (folder / LOCK).unlink()
        folder.rmdir()
    except OSError:
        return False
    return True


def _refuse_another(folder: Path, workspace: str) -> None:
    owner = marker.workspace(folder)
    if owner is not None and owner != workspace:
        raise TreeError(f"The folder {folder} belongs to the workspace {owner}, not to {workspace}.")
    if os.path.lexists(folder / TREE):
        raise TreeError(f"{folder / TREE} is there, but was not made for {workspace}.", hint="Move it away.")


def _make(place: Place, tree: str, folder: Path, workspace: str, copy: Sequence[str], link: Sequence[str]) -> None:
    making = folder / _MAKING
    for left in (making, folder / VIEW):
        _remove(left)
    own_repository.make(place, making)
    _check_out(place, tree, folder, making)
    root = making / place.prefix
    root.mkdir(parents=True, exist_ok=True)
    shared = [path for path in (*copy, *link) if _is_wanted(place, root, path)]
    for path in shared:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if path in link:
            (root / path).symlink_to(place.root / path)
        else:
            _copy(place.root / path, root / path)
    beside = [place.inward(path) for path in shared]
    own_repository.ignore(making, beside)
    marker.write(folder, workspace, place, beside)
    making.rename(folder / TREE)
    view_of(own_place(place, folder), folder)


def _check_out(place: Place, tree: str, folder: Path, making: Path) -> None:
    """Write the files, and the index that knows them. No filter of the repository runs: libgit2 has none."""
    view = view_of(place, folder, making)
    view.index.read_tree(view[tree].peel(pygit2.Tree))
    view.index.write()
    view.checkout(strategy=_ALL)
    for path in conversions.foreign(view, view.index, making, place.common_dir):
        if conversions.is_as_on_disk(view, path):
            _write_bytes(view, making, path)
    shutil.copyfile(folder / VIEW / "index", making / ".git" / "index")
    shutil.copystat(folder / VIEW / "index", making / ".git" / "index")


def _write_bytes(view: pygit2.Repository, top: Path, path: str) -> None:
    """Replace a file that libgit2 has converted by its stored bytes. A link is no such file."""
    entry = view.index[path]
    if entry.mode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
        (top / path).write_bytes(view[entry.id].peel(pygit2.Blob).data)


def _is_wanted(place: Place, root: Path, path: str) -> bool:
    place.inward(path)
    inside = os.path.normpath(path)
    if inside.startswith("..") or os.path.isabs(inside) or inside == ".":
        raise TreeError(f"The path {path!r} of the setting workspace.copy or link is outside the project.")
    return os.path.lexists(place.root / path) and not os.path.lexists(root / path)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it. Links are removed, not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=_unlocked)
    else:
        path.unlink(missing_ok=True)


def _unlocked(function: Callable[..., Any], path: str, _: Any) -> None:
    """Give ourselves the right to change a folder that an agent made read-only, and try again."""
    for each in (os.path.dirname(path), path):
        if not os.path.islink(each) and os.path.isdir(each):
            os.chmod(each, 0o700)
    if function in (os.open, os.scandir, os.listdir, os.lstat):
        shutil.rmtree(path)
    else:
        function(path)
