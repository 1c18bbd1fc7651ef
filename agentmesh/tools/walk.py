"""Walk through a directory's files, sorted by path, without those that Git ignores."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.pathglob import PathPattern, State
from agentmesh.engine.tool import ToolError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_IGNORE_FILE = ".gitignore"
_IGNORE_BYTES = 1 << 20
_MAX_STARS = 4
"""Stars allowed in one name of an ignore pattern: matching more could take very long, so such a pattern is skipped."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Walk:
    """One walk below ``base``; it does not follow links to directories."""

    def __init__(self, base: str, cancel: Cancel, seconds: float, folder: int | None = None) -> None:
        """``folder`` is a descriptor of ``base`` to list it by; without one, ``base`` is opened by its path.

        It stays open for as long as the walk goes on. Each directory is opened from the one above, so one that becomes
        a link is not entered.
        """
        self._folder = folder
        self._base = base
        self._cancel = cancel
        self._deadline = time.monotonic() + seconds
        self.complete = True
        """False once the walk was cut short because its time was over."""

    def files(self, pattern: PathPattern) -> Iterator[str]:
        """Yield the paths, relative to the base, of files that match."""
        above, name = (None, os.path.realpath(self._base)) if self._folder is None else (self._folder, ".")
        return self._below(above, name, "", pattern, pattern.start, _ignores_above(self._base))

    def _below(
        self, above: int | None, name: str, prefix: str, pattern: PathPattern, state: State, ignores: _Ignores
    ) -> Iterator[str]:
        if self._cancel.is_set():
            raise ToolError("Interrupted.")
        if time.monotonic() > self._deadline:
            self.complete = False
            return
        directory = os.path.join(self._base, prefix)
        ignores = ignores.entered(directory)
        try:
            folder = os.open(name, _FOLDER, dir_fd=above)
        except OSError:
            return  # gone or replaced meanwhile, or no permission to read it
        try:
            for key, is_directory in _entries(folder):
                name = key.rstrip("/")
                reached = pattern.step(state, name)
                if not reached or name == ".git" or ignores.ignored(os.path.join(directory, key)):
                    continue
                if is_directory:
                    yield from self._below(folder, name, f"{prefix}{name}/", pattern, reached, ignores)
                elif pattern.accepts(reached):
                    yield prefix + name
        finally:
            os.close(folder)


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Return the entries as sorted pairs: the name (a directory's ends in ``/``) and whether it is a directory."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name + "/", True))
                elif _is_file(entry):
                    found.append((entry.name, False))
    except OSError:
        return []  # gone meanwhile, or no permission to read it
    return sorted(found)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a file, or a link that leads to one; a loop of links, or a closed folder, leads to none."""
    try:
        return entry.is_file()
    except OSError:
        return False


class _Ignores:
    """The ignore files that apply to a directory, the outermost first."""

    def __init__(self, specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()) -> None:
        self._specs = specs

    def entered(self, directory: str) -> _Ignores:
        """Return these ignore files plus the directory's own."""
        spec = _spec(os.path.join(directory, _IGNORE_FILE))
        return _Ignores((*self._specs, (directory.rstrip("/") + "/", spec))) if spec is not None else self

    def ignored(self, path: str) -> bool:
        """Whether a path (a directory's ends in ``/``) is ignored; the innermost file with a match decides."""
        for directory, spec in reversed(self._specs):
            verdict = spec.check_file(path[len(directory) :]).include
            if verdict is not None:
                return verdict
        return False


def _ignores_above(base: str) -> _Ignores:
    """Return the ignore files that apply above ``base``, from the repository's top down."""
    above: list[str] = []
    directory = base
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return _Ignores()  # in no repository: only ignore files below the base count
        above.append(parent)
        directory = parent
    ignores = _Ignores()
    exclude = _spec(os.path.join(directory, ".git", "info", "exclude"))
    if exclude is not None:
        ignores = _Ignores(((directory.rstrip("/") + "/", exclude),))
    for parent in reversed(above):
        ignores = ignores.entered(parent)
    # A caller that names an ignored directory wants to look into it.
    return _Ignores() if above and ignores.ignored(base + "/") else ignores


def _spec(path: str) -> GitIgnoreSpec | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            text = file.read(_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#") and _harmless(line)]
    if not lines:
        return None
    from pathspec import GitIgnoreSpec  # 40 ms, and few directories need it

    try:
        return GitIgnoreSpec.from_lines(lines, backend="simple")
    except ValueError:
        return None  # a pattern that Git would not accept either


def _harmless(line: str) -> bool:
    return all(name.replace("**", "*").count("*") <= _MAX_STARS for name in line.split("/"))
