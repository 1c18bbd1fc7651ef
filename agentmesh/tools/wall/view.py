"""The part of the machine that a walled command sees, in terms that every kind of wall can build.

There are two walls. *Reading* is around a command that nobody approved: it sees the working directory and the system's
programs, read-only, and nothing else. *Approved* is around every other command: it can read everything except the mesh,
and write only to the working directory, temporary files and caches.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmesh.tools.shell.repository import git_directories, own_objects

_SYSTEM: Final = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/run/current-system",
)
_SYSTEM_FILES: Final = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives",
        "group",
        "ld.so.cache",
        "localtime",
        "nsswitch.conf",
        "os-release",
        "passwd",
        "terminfo",
    )
)
"""The files of /etc that programs need to run: /etc also holds secrets."""
_TOOL_FOLDERS: Final = {
    "CONDA_PREFIX": "",
    "GOROOT": "",
    "JAVA_HOME": "",
    "NVM_DIR": "versions",
    "PYENV_ROOT": "",
    "RBENV_ROOT": "versions",
    "RUSTUP_HOME": "toolchains",
    "VIRTUAL_ENV": "",
}
"""Variables that name where a language is installed, and the part of it that holds programs."""
_MOST_WITHHELD: Final = 2000
_FRESH: Final = 5.0
"""Seconds until the folders of programs are looked up again: a look-up adds half a millisecond to a call."""


class TooManyWithheld(Exception):
    """Rules withhold so many files of the working directory that no wall can hide them one by one."""


@dataclass(frozen=True, slots=True)
class View:
    """The places that one command sees; all paths are real paths that exist."""

    workdir: str
    reading: bool
    """For a command that nobody approved; otherwise for an approved one."""
    readable: tuple[str, ...] = ()
    """Visible besides the working directory. An approved command sees everything, and these even in hidden folders."""
    writable: tuple[str, ...] = ()
    """Where an approved command may write besides the working directory and its temporary files."""
    read_only: tuple[str, ...] = ()
    """Places that an approved command cannot change although they are below something in ``writable``."""
    hidden: tuple[str, ...] = ()
    """Files and directories of the mesh: never seen."""
    withheld: tuple[str, ...] = ()
    """Files and directories in the working directory that the session's rules withhold from reading."""
    network: bool = False
    temporary: str = ""
    """A directory for temporary files of the command or its session; empty if the wall makes a new one."""
    etc: str = ""
    """A directory that a reading command sees as /etc, made by :func:`copy_etc`; if empty, it sees the real files."""


def reading_view(
    workdir: Path,
    env: Mapping[str, str],
    *,
    hidden: Sequence[str],
    withheld: Sequence[str],
    temporary: str = "",
    etc: str = "",
    trees: Path | None = None,
) -> View:
    """Return the view of a command that nobody approved."""
    here = os.path.realpath(workdir)
    return View(
        here,
        reading=True,
        readable=(*_programs_and_files(env, here, files=not etc), *git_directories(workdir), *_objects(workdir, trees)),
        hidden=existing(hidden),
        withheld=tuple(withheld),
        temporary=temporary,
        etc=etc,
    )


def approved_view(
    workdir: Path,
    *,
    writable: Sequence[str],
    hidden: Sequence[str],
    withheld: Sequence[str],
    network: bool,
    temporary: str,
    read_only: Sequence[str] = (),
    trees: Path | None = None,
) -> View:
    """Return the view of an approved command. A ``read_only`` place is never writable, even below a writable one."""
    closed = existing(read_only)
    open_ = existing([*writable, *git_directories(workdir)])
    open_ = tuple(path for path in open_ if not any(is_below(path, each) for each in closed))
    return View(
        os.path.realpath(workdir),
        reading=False,
        readable=_objects(workdir, trees),
        writable=open_,
        read_only=tuple(path for path in closed if any(is_below(path, each) for each in open_)),
        hidden=existing(hidden),
        withheld=tuple(withheld),
        network=network,
        temporary=temporary,
    )


def _objects(workdir: Path, trees: Path | None) -> tuple[str, ...]:
    """Return the folder from which the repository of an agent's own tree takes objects, if it is one."""
    objects = own_objects(workdir, trees)
    return existing([objects]) if objects else ()


def copy_etc(folder: str) -> None:
    """Copy the files that programs need from /etc: one directory costs one mount, twelve files would cost twelve."""
    for path in _present(_SYSTEM_FILES):
        copy = os.path.join(folder, os.path.basename(path))
        if os.path.isdir(path):
            shutil.copytree(path, copy, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copyfile(path, copy)


def existing(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the real paths of those that exist, each once."""
    real = (os.path.realpath(os.path.expanduser(path)) for path in paths)
    return tuple(dict.fromkeys(path for path in real if os.path.exists(path)))


def is_below(path: str, folder: str) -> bool:
    """Whether a real path is the folder or is below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def withheld_paths(workdir: Path, is_withheld: Callable[[str], bool] | None) -> list[str]:
    """Return the files and directories of the working directory that rules withhold; raise TooManyWithheld."""
    found: list[str] = []
    if is_withheld is None:
        return found
    root = os.path.realpath(workdir)
    todo = [root]
    while todo:
        folder = todo.pop()
        for entry in _entries(folder):
            if is_withheld(os.path.relpath(entry.path, root)):
                found.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
        if len(found) > _MOST_WITHHELD:
            raise TooManyWithheld
    return found


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.is_symlink())  # a link's target has rules of its own
    except OSError:
        return


def _present(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if os.path.exists(path)]


def _programs_and_files(env: Mapping[str, str], workdir: str, *, files: bool) -> tuple[str, ...]:
    named = [os.path.join(env[name], part) for name, part in _TOOL_FOLDERS.items() if env.get(name)]
    candidates = (*named, *env.get("PATH", "").split(":"), sys.base_prefix, sys.prefix)
    return _looked_for(candidates, workdir, files, int(time.monotonic() / _FRESH))


@functools.lru_cache(maxsize=16)
def _looked_for(candidates: tuple[str, ...], workdir: str, files: bool, _period: int) -> tuple[str, ...]:
    """Return the folders of programs, and the system's files if wanted; look once per period."""
    return (*(_present(_SYSTEM_FILES) if files else ()), *_programs(candidates, workdir))


def _programs(candidates: tuple[str, ...], workdir: str) -> list[str]:
    """Return the folders of programs: system folders, folders in PATH, and folders of languages."""
    shown = _present(_SYSTEM)
    home = os.path.realpath(os.path.expanduser("~"))
    for path in existing([path for path in candidates if path.startswith("/")]):
        # Not the home itself, nor a folder that holds it or the working directory: that would show more than programs.
        holds_more = is_below(home, path) or is_below(workdir, path)
        if os.path.isdir(path) and not holds_more and not any(is_below(path, each) for each in shown):
            shown.append(path)
    return shown
