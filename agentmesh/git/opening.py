"""Open repositories by libgit2, and say in our words why one cannot be used.

A *view* is how we look at a workspace. It is a folder of ours that libgit2 opens as a linked worktree of the user's
repository: objects, refs, configuration and ``info/exclude`` are the user's; index and HEAD are the view's own. The
repository does not list it, and the user's index and HEAD are never opened for writing.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pygit2
from pygit2.enums import ConfigLevel

from agentmesh.domain.errors import NoRepository, TreeError
from agentmesh.domain.text import one_line
from agentmesh.git.fixed_files import require_files, require_named_files
from agentmesh.git.rule_files import read_regular, require_no_pipe
from agentmesh.git.where import Place

VIEW: Final = "view"
_kept: Final = threading.local()
"""An open takes 0.3 ms, a merge little more. A handle of libgit2 may not be used by two threads at once."""
_OPTIONS: Final = pygit2.enums.RepositoryOpenFlag.NO_SEARCH
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DENIED: Final = (errno.EACCES, errno.EPERM)
_SETTINGS: Final = """\
[core]
	safecrlf = false
	ignorecase = {ignorecase}
"""
"""What a view has instead of the user's settings. ``safecrlf`` refuses files; a snapshot has to take them."""
_REFUSALS: Final = {
    "object format": ("names its objects by SHA-256", "agentmesh needs a repository with SHA-1 names."),
    "refstorage": ("stores its refs as a reftable", "Run `git refs migrate --ref-format=files` there."),
    "partialclone": ("is a partial clone", "Clone it whole, without --filter."),
}


def examined(root: Path, top: Path) -> Place:
    """Return the place of ``root`` in the repository at ``top``, or raise NoRepository."""
    try:
        require_files_at(top)
        repository = pygit2.Repository(os.fspath(top / ".git"), _OPTIONS)
        require_named_files(repository)
    except TreeError as error:
        raise NoRepository(error.message, hint=error.hint) from None
    except (pygit2.GitError, KeyError, OSError, ValueError) as error:
        raise _unusable(top, str(error)) from None
    if repository.is_bare:
        raise NoRepository(f"{top} is a bare Git repository and has no files to work on.", hint=_worktree(top))
    if (top / ".git").is_symlink():
        raise NoRepository(
            f"The .git of {top} is a symbolic link, which agentmesh does not follow.",
            hint=f"Put a file in its place that says `gitdir: {Path(repository.path).resolve()}`.",
        )
    if not repository.workdir or Path(repository.workdir).resolve() != top:
        raise NoRepository(
            f"The files of the Git repository {top} are elsewhere (core.worktree).",
            hint=f"Start in {repository.workdir or 'its working tree'}, with a .git there, or unset core.worktree.",
        )
    git_dir = Path(repository.path).resolve()
    place = Place(root=root, top=top, git_dir=git_dir, common_dir=_common(git_dir))
    if place.prefix and repository.path_is_ignored(place.prefix + "/"):
        raise NoRepository(
            f"{root} is ignored by its Git repository {top}.", hint="Work in a directory whose files Git looks at."
        )
    return place


def require_files_at(top: Path) -> None:
    """Raise TreeError if there is a pipe where libgit2 reads a file of the repository whose ``.git`` is in ``top``."""
    entry = top / ".git"
    require_no_pipe(os.fspath(entry), os.fspath(top))
    git_dir = _git_dir(entry)
    require_files(Place(root=top, top=top, git_dir=git_dir, common_dir=_common(git_dir)))


def repository_of(place: Place) -> pygit2.Repository:
    """Open the user's repository, to read and to write objects. Each thread keeps the one that it used last."""
    require_files(place)
    opened = _opened(place)
    require_named_files(opened)
    return opened


def _opened(place: Place) -> pygit2.Repository:
    kept: tuple[Path, pygit2.Repository] | None = getattr(_kept, "repository", None)
    if kept is not None and kept[0] == place.common_dir and place.objects.is_dir():
        return kept[1]
    try:
        opened = pygit2.Repository(os.fspath(place.common_dir), _OPTIONS)
    except (pygit2.GitError, KeyError, OSError) as error:
        raise TreeError(f"The Git repository {place.common_dir} cannot be opened: {error}.", hint=_MOVED) from None
    _kept.repository = (place.common_dir, opened)
    return opened


_MOVED: Final = "If it was moved, move it back, or start the session again in its new place."


def view_of(place: Place, folder: Path, top: Path | None = None) -> pygit2.Repository:
    """Open the view in ``folder`` on the files at ``top``, the place's if not given. It is made if it is missing."""
    view = folder / VIEW
    view.mkdir(parents=True, exist_ok=True)
    _put(view / "HEAD", "ref: refs/heads/agentmesh-has-no-branch\n")
    _put(view / "commondir", f"{os.fspath(place.common_dir)}\n")
    _put(view / "gitdir", f"{os.fspath((top or place.top) / '.git')}\n")
    (view / "index.lock").unlink(missing_ok=True)
    _put(view / "settings", _SETTINGS.format(ignorecase=str(ignores_case(place.top)).lower()))
    require_files(place)
    try:
        opened = pygit2.Repository(os.fspath(view), _OPTIONS)
        # pygit2 1.21 has no `add_file` for a repository's settings, only for others. This adds in memory only.
        pygit2.Config.add_file(opened.config, os.fspath(view / "settings"), ConfigLevel.APP)
    except (pygit2.GitError, KeyError) as error:
        raise TreeError(f"The Git repository {place.common_dir} cannot be opened: {error}.", hint=_MOVED) from None
    return opened


def ignores_case(top: Path) -> bool:
    """Return whether names that differ only in case are one file there. The user's setting may be another disk's."""
    return os.path.lexists(top / ".gIT")


@contextmanager
def told(what: str) -> Iterator[None]:
    """Raise what libgit2 and the system raise as a TreeError that says ``what`` could not be done."""
    try:
        yield
    except (pygit2.GitError, OSError, KeyError, ValueError) as error:
        raise TreeError(f"agentmesh could not {what}: {_reason(error)}.", hint=_hint(error)) from error


def _reason(error: Exception) -> str:
    if is_full(error):
        return "no space is left on the disk"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, OSError) and isinstance(error.filename, str):
        text = f"{text}: {one_line(error.filename, 200)}"
    return text.rstrip(".") or type(error).__name__


def _hint(error: Exception) -> str:
    if is_full(error):
        return "Make room, then try again: nothing was changed."
    if isinstance(error, PermissionError):
        return "Make that writable, then try again: nothing was changed."
    return "Look at the repository with `git fsck`; its files were not changed."


def is_full(error: Exception) -> bool:
    """Return whether an error says that there is no more room."""
    return _is_one_of(error, _FULL)


def is_denied(error: Exception) -> bool:
    """Return whether an error says that a file may not be read."""
    return _is_one_of(error, _DENIED)


def _is_one_of(error: Exception, numbers: tuple[int, ...]) -> bool:
    """Return whether an error of the system has one of these numbers; libgit2 has only its text, at the end."""
    number = error.errno if isinstance(error, OSError) else None
    return number in numbers or any(os.strerror(each) in str(error) for each in numbers)


def _put(path: Path, text: str) -> None:
    """Write a small file, unless it has this text already."""
    data = os.fsencode(text)
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        pass
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(data)
    beside.replace(path)


def _git_dir(entry: Path) -> Path:
    """Return the directory that a ``.git`` stands for: itself, or the one that the file names."""
    try:
        named = os.fsdecode(read_regular(entry))
    except OSError:
        return entry
    return entry.parent / named.removeprefix("gitdir:").strip()


def _common(git_dir: Path) -> Path:
    try:
        named = read_regular(git_dir / "commondir")
    except OSError:
        return git_dir
    return (git_dir / os.fsdecode(named.rstrip(b"\r\n"))).resolve()


def _unusable(top: Path, reason: str) -> NoRepository:
    lowered = reason.lower()
    for word, (what, hint) in _REFUSALS.items():
        if word in lowered:
            return NoRepository(f"The Git repository {top} {what}, which agentmesh cannot read.", hint=hint)
    if "not owned" in lowered:
        return NoRepository(
            f"The Git repository {top} belongs to another user.",
            hint=f"If you trust it: git config --global --add safe.directory {top}",
        )
    return NoRepository(
        f"The Git repository {top} cannot be opened: {reason.rstrip('.')}.", hint="Does `git status` work there?"
    )


def _worktree(top: Path) -> str:
    return f"Make a working tree: git -C {top} worktree add PATH"
