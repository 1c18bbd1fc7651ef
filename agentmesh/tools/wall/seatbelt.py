"""Build a wall with macOS's Seatbelt: a profile for ``sandbox-exec``.

It follows Apple's own profiles in ``/System/Library/Sandbox/Profiles``. No Mac was available: tests check only the
profile's text, while they attack the other walls.
"""

from __future__ import annotations

from typing import Final

from agentmesh.tools.wall.view import View

PROGRAM: Final = "/usr/bin/sandbox-exec"
_SYSTEM: Final = (
    "/Library/Apple",
    "/Library/Developer",
    "/System",
    "/dev",
    "/private/var/db/dyld",
    "/private/var/select",
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/random", "/dev/urandom", "/dev/dtracehelper")


def arguments(view: View) -> list[str]:
    """Return the part of a command line that builds the wall; the command follows."""
    return [PROGRAM, "-p", profile(view)]


def profile(view: View) -> str:
    """Return the profile for a view. Later rules win over earlier ones."""
    return "\n".join(["(version 1)", *(_reading(view) if view.reading else _approved(view))]) + "\n"


def _reading(view: View) -> list[str]:
    return [
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        _paths("allow file-read*", (*_SYSTEM, *view.readable, view.workdir)),
        _paths("allow file-read* file-write*", [view.temporary] if view.temporary else []),
        _files("allow file-write-data", _DEVICES),
        *_closed(view),
    ]


def _approved(view: View) -> list[str]:
    return [
        "(allow default)",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny process-info*)",
        "(allow process-info* (target same-sandbox))",
        '(deny mach-lookup (global-name "com.apple.securityd") (global-name "com.apple.SecurityServer"))',
        "(deny file-write*)",
        _paths("allow file-write*", [*view.writable, view.workdir, *([view.temporary] if view.temporary else [])]),
        _paths("deny file-write*", view.read_only),
        _files("allow file-write-data", _DEVICES),
        "(deny network-outbound (remote unix-socket))",
        *([] if view.network else ["(deny network*)"]),
        *_closed(view),
    ]


def _closed(view: View) -> list[str]:
    return [
        _paths("deny file-read* file-write*", view.hidden),
        _paths("deny file-read-data file-write*" if view.reading else "deny file-read-data", view.withheld),
    ]


def _paths(rule: str, paths: tuple[str, ...] | list[str]) -> str:
    return f"({rule} {' '.join(f'(subpath {_quoted(path)})' for path in paths)})" if paths else f";; nothing to {rule}"


def _files(rule: str, paths: tuple[str, ...]) -> str:
    return f"({rule} {' '.join(f'(literal {_quoted(path)})' for path in paths)})"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
