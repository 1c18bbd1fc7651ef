"""Files that tools may touch: paths that stay inside the working directory.

A path is resolved, symbolic links included, and compared with the resolved working directory and with the place that
was judged. It is then opened one directory after another, from the root of the file system and never through a link.
So a tool opens exactly the file that was judged: a link that changes meanwhile ends the call.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentmesh.config.nofollow import FOLDER, PASS, open_folder
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.tools.near import close_names
from agentmesh.workspace.roots import OwnTree

_KERNEL = re.compile(r"/+(?:proc|dev/fd)(?:/|$)")
"""Names that mean something different for each process that opens them."""
_PATTERN = re.compile(r"[*?{\[]")
"""Characters that make a missing path look like a pattern of paths."""
_PROTECTED = frozenset({".git", ".agentmesh"})


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A resolved path below a directory that it must not leave."""

    root: str
    parts: tuple[str, ...]
    shown: str
    """The path as models and people read it: relative inside the working directory, absolute outside."""

    @property
    def path(self) -> Path:
        """The absolute path; it held no symbolic links when it was resolved."""
        return Path(self.root, *self.parts)


def locate(workdir: Path, given: str) -> str:
    """Return where a path leads, for permission rules: relative to the working directory, absolute outside it.

    ``..`` and symbolic links are resolved. Text that cannot be a path becomes an absolute path that no rule allows.
    """
    try:
        root, real = _resolve(workdir, given)
    except ToolError:
        return "/\0"
    return _below(root, real) or real


def place(context: ToolContext, given: str) -> FilePlace:
    """Resolve a path that a model gave, or refuse it; also if it leads elsewhere than when it was judged."""
    root, real = _resolve(context.workdir, given)
    shown = _below(root, real)
    if context.judged is not None and (shown or real) != context.judged:
        raise changed(given)
    if shown:
        return FilePlace(root, () if shown == "." else tuple(shown.split("/")), shown)
    if context.own and (objection := elsewhere(context.own, given, real, writes=False)):
        raise objection
    if not context.outside:
        raise ToolError(
            f"{given} is outside the working directory {root}.",
            "Use a path inside it; symbolic links that lead out count as outside.",
        )
    return FilePlace("/", tuple(part for part in real.split("/") if part), real)


def readable_place(context: ToolContext, given: str) -> FilePlace:
    """Resolve a path that a model wants to read, or refuse it."""
    found = place(context, given)
    if context.withheld is not None and context.withheld(found.shown):
        raise ToolError(f"Permission rules keep {found.shown} from being read.", "Do without it, and say so.")
    return found


def writable_place(context: ToolContext, given: str) -> FilePlace:
    """Resolve a path that a model wants to write, or refuse it."""
    found = place(context, given)
    if context.forbidden is not None and context.forbidden(found.shown):
        raise ToolError(f"Permission rules keep {found.shown} from being written.", "Do without it, and say so.")
    if context.own and (objection := elsewhere(context.own, given, str(found.path), writes=True)):
        raise objection
    if not found.parts:
        raise ToolError(f"{given} is a directory.", "Name a file.")
    below = found.root
    for part in found.parts:
        if _plain_name(part) in _PROTECTED:
            raise ToolError(f"{found.shown} is not writable: {part} is protected.", "Use the program it belongs to.")
        if _is_git_directory(below):
            raise ToolError(f"{found.shown} is not writable: it is in a Git directory.", "Use git with `bash`.")
        below = os.path.join(below, part)
    return found


def elsewhere(own: OwnTree, given: str, real: str, *, writes: bool) -> ToolError | None:
    """Return the refusal of a path outside an agent's own tree; None if it may be used there.

    Nothing outside is ever written. What the tree has itself is not read in the user's checkout: a model that goes by
    paths of its parent's conversation would take one version for the other.
    """
    if _below(os.path.realpath(own.top), real) is not None:
        return None
    meant = own.instead_of(real)
    is_link = meant == os.path.normpath(given)
    if not writes and (is_link or meant is None or not os.path.lexists(own.root / meant)):
        return None
    hint = "Use a path inside it." if is_link or meant is None else f"You probably mean {meant}."
    return ToolError(f"{given} is not in your own tree {own.root}.", hint)


def changed(shown: str) -> ToolError:
    """Return the refusal of a path that leads elsewhere than when it was judged or resolved."""
    return ToolError(f"{shown} changed while it was opened.", "Look at it again, then repeat the call.")


def open_file(found: FilePlace) -> int:
    """Open a regular file for reading; the caller closes the descriptor."""
    fd, is_directory = open_either(found)
    if not is_directory:
        return fd
    os.close(fd)
    raise ToolError(f"{found.shown} is a directory.", "List what is in it with `glob`.")


def open_either(found: FilePlace) -> tuple[int, bool]:
    """Open a regular file or a directory for reading, and return which; the caller closes the descriptor."""
    with explained(found), _directory(found) as parent:
        # O_NONBLOCK: opening a pipe that nobody writes to must not hang.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(found.parts[-1] if found.parts else ".", flags, dir_fd=parent)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return fd, stat.S_ISDIR(mode)
    os.close(fd)
    raise ToolError(f"{found.shown} is not a regular file.", "Use `bash` for pipes, sockets and devices.")


@contextlib.contextmanager
def open_directory(found: FilePlace) -> Iterator[int]:
    """Open a directory to list it; refuse anything else."""
    fd, is_directory = open_either(found)
    try:
        if not is_directory:
            raise ToolError(f"{found.shown} is not a directory.", "Name the directory to start from.")
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def open_parent(found: FilePlace, *, create: bool) -> Iterator[int]:
    """Open the directory that holds a place; with ``create``, make missing directories."""
    with explained(found), _directory(found, create=create, flags=os.O_RDONLY) as fd:
        yield fd


@contextlib.contextmanager
def _directory(found: FilePlace, *, create: bool = False, flags: int = PASS) -> Iterator[int]:
    fd = open_folder(found.root)
    try:
        for part in found.parts[:-1]:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
            fd = _replaced(fd, os.open(part, PASS | FOLDER, dir_fd=fd))
        if flags != PASS:
            fd = _replaced(fd, os.open(".", flags | FOLDER, dir_fd=fd))
        yield fd
    finally:
        os.close(fd)


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new


@contextlib.contextmanager
def explained(found: FilePlace) -> Iterator[None]:
    """Turn an OSError about this place into an error that a model can act on."""
    try:
        yield
    except FileNotFoundError as error:
        raise _missing(found) from error
    except OSError as error:
        # A folder that became a link is no directory to the kernel, and a file that did is one link too many.
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and os.path.realpath(found.path) != str(found.path):
            raise changed(found.shown) from error
        if error.errno == errno.ELOOP:
            raise ToolError(
                f"{found.shown} is a symbolic link: it leads in a circle, or has just replaced a file.",
                "Look at it with `bash`: `ls -l`.",
            ) from error
        if error.errno == errno.ENOTDIR:
            raise ToolError(f"A part of {found.shown} is not a directory.", "Check it with `glob`.") from error
        reason = (error.strerror or str(error)).lower()
        raise ToolError(f"{found.shown} cannot be used: {reason}.", "Check it with `bash`: `ls -ld`.") from error


def _missing(found: FilePlace) -> ToolError:
    if not os.path.lexists(found.root):
        return ToolError(f"The directory {found.root} does not exist.", "Ask the user to restore it.")
    near = close_names(found.root, found.parts)
    if near:
        hint = f"Did you mean {', '.join(near)}?"
    elif _PATTERN.search(found.shown):
        hint = "A path is no pattern: give a directory, or find files with `glob`."
    else:
        hint = "Find it with `glob`."
    return ToolError(f"{found.shown} does not exist.", hint)


def _resolve(workdir: Path, given: str) -> tuple[str, str]:
    """Return where the working directory and the given path lead, links resolved; refuse text that cannot be a path."""
    if not given.strip() or "\0" in given:
        raise ToolError("The path is empty or contains a NUL character.", "Name a file of the working directory.")
    try:
        os.fsencode(given)
    except UnicodeEncodeError as error:
        raise ToolError("The path is not valid Unicode.", "Copy it from what `glob` returned.") from error
    start = str(workdir)
    root = os.path.realpath(start)
    joined = os.path.join(start, os.path.expanduser(given))
    try:
        real = _real(start, root, joined)
    except OSError as error:  # the kernel hides where links of another user's process lead
        raise ToolError(f"{given} cannot be followed.", "Use a plain path of the working directory.") from error
    named = (real,) if joined == real else (joined, os.path.normpath(joined), real)
    if any(map(_KERNEL.match, named)) and not _KERNEL.match(start):
        raise ToolError(f"{given} is not a file of the working directory.", "Use its plain path.")
    return root, real


def _real(start: str, root: str, path: str) -> str:
    """Resolve a path like ``os.path.realpath``, but do not check the names that lead to ``root`` again.

    ``start`` leads to ``root``, which is free of links. Below either of them, names that are not links already are the
    real path. As soon as one name is a link or ``..``, the whole path is resolved again.
    """
    for known in (start, root):
        above = known.rstrip("/") + "/"
        if path.startswith(above):
            break
    else:
        return os.path.realpath(path)
    real = root.rstrip("/")
    for name in path[len(above) :].split("/"):
        if name in ("", "."):
            continue
        real = f"{real}/{name}"
        if name == ".." or os.path.islink(real):
            return os.path.realpath(path)
    return real or "/"


def _below(root: str, real: str) -> str | None:
    """Return a real path relative to a directory, ``.`` for itself; None if it is not below."""
    if real == root:
        return "."
    above = root.rstrip("/") + "/"
    return real[len(above) :] if real.startswith(above) else None


def _plain_name(name: str) -> str:
    """Return the name the way file systems compare it that ignore case and invisible characters."""
    visible = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return visible.casefold().rstrip(". ")


def _is_git_directory(path: str) -> bool:
    """Whether this is a Git directory under another name: a bare repository, or one that a `.git` file points to."""
    return all(os.path.exists(os.path.join(path, name)) for name in ("HEAD", "objects", "refs"))
