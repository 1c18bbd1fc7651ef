"""Build a wall with Landlock: rules that the kernel checks whenever a process opens, makes or removes a file.

Landlock (``linux/landlock.h``) allows paths, and refuses any that no rule names. It hides contents, not existence:
``stat`` still works on a name. It does not guard sockets and metadata; the filter of system calls does.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, Final

from agentmesh.tools.wall.view import View, is_below

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_ALL_OF_VERSION_1: Final = (1 << 13) - 1
_MAKE_AND_REMOVE: Final = _ALL_OF_VERSION_1 & ~(_EXECUTE | _WRITE_FILE | _READ_FILE | _READ_DIR)
_ONLY_DIRECTORIES: Final = _MAKE_AND_REMOVE | _READ_DIR | _REFER
_SEE: Final = _EXECUTE | _READ_FILE | _READ_DIR
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2

_DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_KERNEL_FILES: Final = tuple(
    f"/proc/{name}" for name in ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
)

SCOPED_VERSION: Final = 6
"""From this version on, a process can be kept from signalling others and from using their abstract sockets."""
TRUNCATE_VERSION: Final = 3
_SIZES: Final = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
"""Size in bytes of ``struct landlock_ruleset_attr`` by version; 24 from version 6 on."""


def ruleset(view: View, version: int) -> dict[str, Any]:
    """Return the rules for a view in the form that ``confine.py`` takes, for a version of the kernel's interface."""
    handled = _handled(version)
    writing = handled & ~_SEE
    rules = list(_devices(handled))
    if view.reading:
        for path in (*view.readable, view.workdir):
            rules += _granted(path, _SEE, _closed(view))
        rules += [(path, _READ_FILE) for path in _KERNEL_FILES]
        rules += [(view.temporary, handled)]
    else:
        rules += _granted("/", _SEE, (*_closed(view), *_private()))
        rules += [(path, _SEE) for path in view.readable]
        for path in (*view.writable, view.workdir):
            rules += _granted(path, _SEE, _closed(view))
            rules += _granted(path, writing, (*view.hidden, *view.read_only))
        rules += [(view.temporary, handled)]
    rules += [(view.workdir, _READ_DIR)] if view.withheld else []
    return {
        "files": handled,
        "network": 0,
        "scoped": _scoped(version),
        "size": _SIZES.get(version, 24),
        "rules": [(path, _fitting(path, allowed)) for path, allowed in rules if path],
    }


def scope_only(version: int) -> dict[str, Any] | None:
    """Return a ruleset without file rules that contains signals and abstract sockets; None if the kernel is too old."""
    if version < SCOPED_VERSION:
        return None
    return {"files": 0, "network": 0, "scoped": _scoped(version), "size": 24, "rules": []}


def _handled(version: int) -> int:
    handled = _ALL_OF_VERSION_1
    if version >= 2:
        handled |= _REFER
    if version >= TRUNCATE_VERSION:
        handled |= _TRUNCATE
    return handled


def _scoped(version: int) -> int:
    return _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= SCOPED_VERSION else 0


def _closed(view: View) -> tuple[str, ...]:
    return (*view.hidden, *view.withheld)


def _private() -> tuple[str, ...]:
    """Return further places that an approved command must not see: other programs' sockets, memory and terminals.

    In /dev it sees only ``_DEVICES``, as behind bubblewrap.
    """
    found = ["/dev", "/tmp", "/run"]  # noqa: S108  closed, not used
    names = os.path.realpath("/etc/resolv.conf")
    return tuple(path for path in found if not is_below(names, path))


def _devices(handled: int) -> Iterator[tuple[str, int]]:
    yield from ((path, (_READ_FILE | _WRITE_FILE | _TRUNCATE) & handled) for path in _DEVICES)


def _granted(path: str, allowed: int, closed: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield rules that allow everything below a path but ``closed``; no rule can take back what another one allows."""
    inside = [each for each in closed if is_below(each, path)]
    if not inside:
        yield path, allowed
    elif path not in inside and os.path.isdir(path):
        for entry in _entries(path):
            yield from _granted(entry, allowed, inside)


def _entries(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.is_symlink()]  # a link may lead to a closed path
    except OSError:
        return []


def _fitting(path: str, allowed: int) -> int:
    """Return the rights that the kernel accepts for a path: a file has none that only apply to directories."""
    return allowed if os.path.isdir(path) else allowed & ~_ONLY_DIRECTORIES
