"""Files below a directory, reached folder by folder so that no symbolic link is ever followed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from agentmesh.domain.errors import TreeError
from agentmesh.git.tree_objects import FILE, LINK, PROGRAM

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHER: Final = 0
_USUAL: Final = {False: 0o666, True: 0o777}
"""Permissions of a new file and of a new program; the system subtracts the umask from them."""


class Found(NamedTuple):
    """A file or link on disk, or something else (mode 0)."""

    mode: int
    data: bytes


class Folders:
    """The folders below ``top``, each opened once."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._open: dict[str, int] = {}

    def __enter__(self) -> Self:
        self._open[""] = os.open(self._top, _OPEN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._open.values():
            os.close(file)

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def blocker(self, path: str) -> str | None:
        """Return the first of the folders above a path that is there and no folder, such as a link."""
        parts = path.split("/")[:-1]
        for above in ("/".join(parts[: count + 1]) for count in range(len(parts))):
            mode = self._mode(above)
            if mode is None:
                return None
            if not stat.S_ISDIR(mode):
                return above
        return None

    def beside(self, path: str) -> str:
        """Return a new name in the deepest folder above a path that is there."""
        above = path.rpartition("/")[0]
        while above and self._opened(above) is None:
            above = above.rpartition("/")[0]
        name = f".agentmesh-{secrets.token_hex(8)}"
        return f"{above}/{name}" if above else name

    def read(self, path: str) -> Found | None:
        """Return the file or link at a path; None if there is nothing, or a folder, or if a link leads there."""
        folder, name = self._split(path)
        mode = self._mode(path)
        if folder is None or mode is None or stat.S_ISDIR(mode):
            return None
        try:
            if stat.S_ISLNK(mode):
                return Found(LINK, os.fsencode(os.readlink(name, dir_fd=folder)))
            if not stat.S_ISREG(mode):
                return Found(_OTHER, b"")
            with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
                return Found(PROGRAM if mode & 0o100 else FILE, file.read())
        except FileNotFoundError:
            return None

    def files_below(self, path: str) -> set[str]:
        """Return all files in a folder, of any kind."""
        found: set[str] = set()
        folder = self._opened(path)
        if folder is None:
            return {path}
        for name in os.listdir(folder):
            inner = f"{path}/{name}"
            found |= self.files_below(inner) if self.is_folder(inner) else {inner}
        return found

    def remove(self, path: str) -> None:
        """Remove a file or link, if it is there."""
        folder, name = self._split(path)
        if folder is None:
            return
        try:
            os.unlink(name, dir_fd=folder)
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            if isinstance(error, PermissionError) and not self.is_folder(path):
                raise

    def prune(self, path: str) -> None:
        """Remove the folders above a removed file that are empty now."""
        above = path.rpartition("/")[0]
        while above:
            folder, name = self._split(above)
            if folder is None:
                return
            try:
                os.rmdir(name, dir_fd=folder)
            except FileNotFoundError:
                pass
            except OSError:
                return
            self._forget(above)
            above = above.rpartition("/")[0]

    def create(
        self, path: str, data: bytes, *, is_program: bool, permissions: int | None, old: os.stat_result | None
    ) -> None:
        """Write a new file that is to replace the ``old`` one.

        It gets the old one's owner and group if we may set them, and if no permissions are given those too. Without
        an old one it gets what every new file gets.
        """
        folder, name = self._split(path)
        if permissions is None and old is not None:
            permissions = stat.S_IMODE(old.st_mode)
        # Nobody else may read it before its permissions are right.
        file = os.open(name, _NEW, _USUAL[is_program] if permissions is None else 0o600, dir_fd=folder)
        with os.fdopen(file, "wb") as out:
            out.write(data)
            if permissions is not None and old is not None:
                permissions = _given(out.fileno(), old, permissions)
            if permissions is not None:  # last: a new owner may cost a file some of them
                os.fchmod(out.fileno(), _with_program(permissions, is_program=is_program))

    def file_stat(self, path: str) -> os.stat_result | None:
        """Return what the system knows of a file; None if none is there."""
        found = self._stat(path)
        return found if found is not None and stat.S_ISREG(found.st_mode) else None

    def link(self, path: str, target: bytes) -> None:
        """Make a symbolic link."""
        folder, name = self._split(path)
        os.symlink(os.fsdecode(target), name, dir_fd=folder)

    def put(self, beside: str, path: str) -> bool:
        """Put a file from beside in its place; return whether it went, which a folder with files hinders."""
        source, old = self._split(beside)
        folder, name = self._split(path, make=True)
        try:
            self._clear(path)
            os.rename(old, name, src_dir_fd=source, dst_dir_fd=folder)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return False
        return True

    def _clear(self, path: str) -> None:
        """Remove the folder at a path if there is nothing but empty folders in it."""
        if not self.is_folder(path) or self.files_below(path):
            return
        folder = self._opened(path)
        for name in os.listdir(folder) if folder is not None else ():
            self._clear(f"{path}/{name}")
        self._forget(path)
        above, name = self._split(path)
        os.rmdir(name, dir_fd=above)

    def _mode(self, path: str) -> int | None:
        """Return the mode of a path, links not followed; None if nothing is there."""
        found = self._stat(path)
        return None if found is None else found.st_mode

    def _stat(self, path: str) -> os.stat_result | None:
        folder, name = self._split(path)
        if folder is None:
            return None
        try:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _split(self, path: str, *, make: bool = False) -> tuple[int | None, str]:
        above, _, name = path.rpartition("/")
        return self._opened(above, make=make), name

    def _opened(self, path: str, *, make: bool = False) -> int | None:
        """Return the open folder; None if it is not there. A link or a file on the way is no folder."""
        if path in self._open:
            return self._open[path]
        above, name = self._split(path, make=make)
        if above is None:
            return None
        try:
            if make:
                _make(name, above)
            self._open[path] = os.open(name, _OPEN, dir_fd=above)
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError) and error.errno != errno.ELOOP:
                raise
            if make:
                raise TreeError(f"{path!r} is no folder, so nothing can be written in it.") from error
        return self._open.get(path)

    def _forget(self, path: str) -> None:
        for each in [each for each in self._open if each == path or each.startswith(f"{path}/")]:
            os.close(self._open.pop(each))


def _make(name: str, folder: int) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)


def _given(file: int, old: os.stat_result, permissions: int) -> int:
    """Give a file the group and the owner of the old one; return the permissions that it may have then.

    Only root may give files away. Another user may choose a group that it is in. If the group cannot be set, the file's
    group may do no more than it could before, when it was one of the others.
    """
    for owner, group in ((-1, old.st_gid), (old.st_uid, -1)):
        with contextlib.suppress(OSError):
            os.fchown(file, owner, group)
    if os.fstat(file).st_gid == old.st_gid:
        return permissions
    return permissions & (~stat.S_IRWXG | (permissions & stat.S_IRWXO) << 3)


def _with_program(mode: int, *, is_program: bool) -> int:
    """Return a mode in which everybody who may read the file may run it, or nobody may."""
    return mode | (mode & 0o444) >> 2 if is_program else mode & ~0o111
