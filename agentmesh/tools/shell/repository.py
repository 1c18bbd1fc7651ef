"""Find the repository that a git command would use, and say why git might run one of its programs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agentmesh.domain import jsontext
from agentmesh.git.marker import MARKER
from agentmesh.git.place import TREE
from agentmesh.git.rule_files import read_regular
from agentmesh.tools.shell.gitconfig import config_objection, hooks_path

_MAX_INDEX = 64 * 1024 * 1024
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of a submodule, as stored in the index."""
_HOOK = "post-index-change"
"""The one hook that read-only commands may run: they do so when they store what they learned about files."""


def repository_objection(start: str, root: str, *, files: bool, objects: str) -> str:
    """Return why a git command that starts in a directory may run a program, or an empty string.

    ``root`` is the working directory. ``files`` means that the command may look into files of the working tree, and so
    into submodules. ``objects``: where the repository at ``root`` may take objects from.
    """
    place = os.path.realpath(start)
    opened = False
    while True:
        entry = Path(place, ".git")
        if _within(place, root):
            # Git skips entries that are not repositories, so check every one up to the working directory.
            found = _entry_objection(entry, root, files=files, objects=objects if place == root else "")
            if found:
                return found
            opened = opened or os.path.lexists(entry / "HEAD") or entry.is_file()
        elif not opened and (os.path.lexists(entry) or _is_bare(place)):
            return "the repository is above the working directory"
        above = os.path.dirname(place)
        if above == place:
            return ""
        place = above


def _entry_objection(entry: Path, root: str, *, files: bool, objects: str) -> str:
    """Return the objection to one directory in which git looks for a repository."""
    if _is_bare(str(entry.parent)):
        return f"{entry.parent} looks like a repository without a working tree"
    if not os.path.lexists(entry):
        return ""
    if not entry.is_dir() and not entry.is_file():
        return f"{entry} is neither a directory nor a file"
    found = _directories(entry, root)
    if isinstance(found, str):
        return found
    return _contents_objection(entry.parent, *found, files=files) or _objects_objection(found[1] / "objects", objects)


def git_directories(workdir: Path) -> tuple[str, ...]:
    """Return the directories of a verified linked worktree that git needs, outside the working directory.

    The worktree's administrative directory must point back at the working directory, so that a forged ``.git`` file
    opens no other repository.
    """
    root = os.path.realpath(workdir)
    entry = Path(root, ".git")
    if entry.is_symlink() or not entry.is_file():
        return ()
    found = _directories(entry, root)
    if isinstance(found, str):
        return ()
    return tuple(dict.fromkeys(str(path) for path in found if not _within(str(path), root)))


def own_objects(workdir: Path, trees: Path | None) -> str:
    """Return the objects that the repository of an agent's own tree may take from the user's; empty if it is none.

    The marker beside the tree names them. The agent cannot write there: only ``trees`` is looked into, and its root is
    a ``tree`` below that. So a file of the same name somewhere else means nothing.
    """
    if trees is None:
        return ""
    folder, _, below = os.path.relpath(os.path.realpath(workdir), os.path.realpath(trees)).partition("/")
    if folder in (".", "..") or below.split("/")[0] != TREE:
        return ""
    try:
        marker = jsontext.parse(Path(trees, folder, MARKER).read_bytes())
    except (OSError, ValueError):
        return ""
    named = marker.get("objects") if isinstance(marker, dict) and marker.get("workspace") == folder else None
    return named if isinstance(named, str) and os.path.isabs(named) else ""


def _directories(entry: Path, root: str) -> tuple[Path, Path] | str:
    """Return the git directory and the common directory that an entry ``.git`` leads to, or its problem."""
    try:
        own = _own_directory(entry)
        common = _common_directory(own)
    except (OSError, ValueError, RuntimeError):
        return f"where {entry} leads cannot be read"
    if _within(str(own), root) and _within(str(common), root):
        return own, common
    if entry.is_dir() or _within(str(own), root) or str(entry.parent) != root or own.parent != common / "worktrees":
        return f"{entry} leads outside the working directory"
    try:
        back = os.path.realpath(own / _line(own / "gitdir"))
    except (OSError, ValueError):
        back = ""
    if back != os.path.realpath(entry):
        return f"{entry} leads to a repository that does not point back"
    return own, common


def _own_directory(entry: Path) -> Path:
    if entry.is_dir():
        return entry.resolve(strict=True)
    found = re.fullmatch(r"gitdir: ?(.+)", _line(entry))
    if found is None:
        raise ValueError("no gitdir")
    return (entry.parent / found[1]).resolve(strict=True)


def _common_directory(own: Path) -> Path:
    pointer = own / "commondir"
    return (own / _line(pointer)).resolve(strict=True) if os.path.lexists(pointer) else own


def _line(path: Path) -> str:
    """Return the one line of a small file."""
    text = os.fsdecode(read_regular(path, most=8192)).rstrip("\r\n")
    if not text or "\n" in text or "\0" in text:
        raise ValueError("not one line")
    return text


def _contents_objection(tree: Path, own: Path, common: Path, *, files: bool) -> str:
    configurations = dict.fromkeys((common / "config", own / "config.worktree", common / "config.worktree"))
    for path in configurations:
        if found := config_objection(path):
            return found
    named = [hooks for path in configurations if (hooks := hooks_path(path))]
    for folder in (common / "hooks", *(tree / name for name in named)):
        if os.path.lexists(folder / _HOOK):
            return f"it has a hook {_HOOK}"
    return _index_objection(own) if files else ""


def _objects_objection(folder: Path, known: str) -> str:
    """Return an objection if a repository takes objects from elsewhere than the ``known`` folder."""
    objection = "it takes objects from another repository"
    alternates = folder / "info" / "alternates"
    if os.path.lexists(folder / "info" / "http-alternates"):
        return objection
    if not os.path.lexists(alternates):
        return ""
    try:
        others = _line(alternates)
    except (OSError, ValueError):
        return objection
    return _objects_objection(Path(known), "") if known and others == known else objection


def _index_objection(own: Path) -> str:
    """Return an objection if submodules are checked out: git runs itself in each, with its own configuration."""
    try:
        for path in (own / "index", *own.glob("sharedindex.*")):
            if path.exists() and (path.stat().st_size > _MAX_INDEX or _GITLINK in read_regular(path)):
                return "it may have submodules"
    except OSError:
        return "its index cannot be read"
    return ""


def _is_bare(place: str) -> bool:
    """Whether git may take the directory itself for a repository."""
    return os.path.lexists(os.path.join(place, "HEAD")) and any(
        os.path.lexists(os.path.join(place, name)) for name in ("objects", "commondir")
    )


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
