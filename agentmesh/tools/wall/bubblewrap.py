"""Build a wall with bubblewrap: separate namespaces, in which only the files are mounted that the command may see."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Final

from agentmesh.tools.wall.view import View, is_below

_FILE_CAPABILITIES: Final = (
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_NET_BIND_SERVICE",
    "CAP_SETGID",
    "CAP_SETUID",
)
"""Capabilities that root keeps for an approved command: to use other users' files and start programs as them."""
_HIDDEN_SYSTEM: Final = ("/run", "/tmp")  # noqa: S108  replaced, not used
"""Where other programs keep sockets: services, desktops, terminals, container engines."""
_KEPT_OF_RUN: Final = ("/run/current-system", "/etc/resolv.conf")

_KEY_LISTS: Final = ("/proc/keys", "/proc/key-users")
"""They list the keys of the user, which have no namespace."""


def program() -> str:
    """Return the path of bubblewrap; empty if it is not installed."""
    # Skip relative and empty entries of PATH: a file of the working directory must not pass for it.
    path = ":".join(part for part in os.environ.get("PATH", os.defpath).split(":") if part.startswith("/"))
    return shutil.which("bwrap", path=path) or ""


def arguments(bwrap: str, view: View) -> list[str]:
    """Return bubblewrap's own part of a command line; the command follows after ``--``."""
    mounts = _reading(view) if view.reading else _approved(view)
    return [bwrap, "--die-with-parent", *mounts, "--chdir", view.workdir, "--"]


def _reading(view: View) -> Iterator[str]:
    yield from ("--unshare-all", "--cap-drop", "ALL")
    late = [path for path in view.readable if is_below(path, "/tmp")]  # noqa: S108  after the new /tmp
    for path in view.readable:
        if path not in late:
            yield from _shown(path)
    if view.etc:
        yield from ("--ro-bind", view.etc, "/etc")
    yield from ("--proc", "/proc", *_kernel_settings(), *_covered(_KEY_LISTS))
    yield from ("--dev", "/dev", "--tmpfs", "/tmp")  # noqa: S108
    for path in late:
        yield from _shown(path)
    yield from ("--ro-bind", view.workdir, view.workdir)
    visible = (*view.readable, view.workdir)
    yield from _covered(path for path in view.hidden if any(is_below(path, each) for each in visible))
    yield from _covered(view.withheld)
    yield from ("--remount-ro", "/")


def _approved(view: View) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")
    if os.geteuid() == 0:
        for name in _FILE_CAPABILITIES:
            yield from ("--cap-add", name)
    if not view.network:
        yield "--unshare-net"
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", *_kernel_settings())
    for path in _HIDDEN_SYSTEM:
        if os.path.isdir(path) and not os.path.islink(path):
            yield from ("--tmpfs", path)
    for path in dict.fromkeys(map(os.path.realpath, _KEPT_OF_RUN)):
        if is_below(path, "/run") and os.path.exists(path):
            yield from ("--ro-bind", path, path)
    if view.temporary:
        yield from ("--bind", view.temporary, "/tmp")  # noqa: S108
    yield from _opened_and_closed(view)
    yield from ("--bind", view.workdir, view.workdir)
    yield from _covered(path for path in view.hidden if is_below(path, view.workdir) and path != view.workdir)
    yield from _covered(view.withheld)


def _opened_and_closed(view: View) -> Iterator[str]:
    """Yield the arguments for writable, read-only and hidden places outside the working directory.

    A hidden path may be in a cache, and a cache or the working directory in a hidden folder: the inner one wins.
    """
    outer = [path for path in view.hidden if not is_below(path, view.workdir)]
    shown = (*view.read_only, *view.readable)
    for path in sorted((*view.writable, *shown, *outer), key=_depth):
        if path in outer:
            yield from _covered([path])
        else:
            yield from ("--ro-bind" if path in shown else "--bind", path, path)


def _kernel_settings() -> Iterator[str]:
    """Yield arguments that keep root from changing the kernel's settings: that needs no capability."""
    if os.geteuid() == 0:
        for name in ("sys", "sysrq-trigger", "fs", "acpi", "scsi", "mtrr"):
            if os.path.exists(f"/proc/{name}"):
                yield from ("--ro-bind", f"/proc/{name}", f"/proc/{name}")


def _shown(path: str) -> tuple[str, str, str]:
    """Return the arguments that show a path read-only; ``/bin`` is a link to ``/usr/bin`` on many systems."""
    if os.path.islink(path) and os.path.dirname(path) == "/":
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind", path, path)


def _covered(paths: Iterator[str] | list[str] | tuple[str, ...]) -> Iterator[str]:
    """Yield the arguments that cover each path with something empty."""
    for path in paths:
        if os.path.isdir(path):
            yield from ("--tmpfs", path)
        elif os.path.exists(path):
            yield from ("--ro-bind", "/dev/null", path)


def _depth(path: str) -> int:
    return path.count("/")
