"""Confine the calling process before it executes a command: Landlock, seccomp, and no capabilities.

The spawner loads this file by its path, so it uses the standard library only. What to confine arrives as plain data,
made by ``landlock.py`` and ``seccomp.py``. Linux only. Numbers come from the kernel's headers ``linux/prctl.h``,
``linux/capability.h`` and ``linux/landlock.h``.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import struct
import sys
from typing import Any

_PR_CAPBSET_DROP = 24
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_LANDLOCK_CREATE_RULESET, _SYS_LANDLOCK_ADD_RULE, _SYS_LANDLOCK_RESTRICT_SELF = 444, 445, 446
_VERSION = 1
"""``LANDLOCK_CREATE_RULESET_VERSION``."""
_LANDLOCK_RULE_PATH_BENEATH = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_PRCTL, _SYSCALL = _LIBC.prctl, _LIBC.syscall
"""Looked up before the fork: loading a library in each child costs a millisecond."""


def landlock_version() -> int:
    """Return the version of the kernel's Landlock interface; 0 if it has none."""
    return max(int(_SYSCALL(_SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)), 0)


def with_filter(argv: list[str], how: dict[str, Any]) -> tuple[list[str], list[int]]:
    """Return the command line, and the descriptors that it needs: bubblewrap reads its filter of system calls from one.

    Bubblewrap needs calls that the filter refuses, so it loads the filter itself, right before the command.
    """
    if not how.get("filter"):
        return argv, []
    descriptor = os.memfd_create("seccomp")
    os.write(descriptor, base64.b64decode(how["filter"]))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return [argv[0], "--seccomp", str(descriptor), *argv[1:]], [descriptor]


def confine(how: dict[str, Any]) -> None:
    """Confine this process for good, as ``how`` says; raise OSError if the kernel refuses a part of it.

    Call it between fork and exec. Order matters: capabilities are dropped while that is still allowed. The filter of
    system calls comes last, because it may refuse calls that the other steps need.
    """
    _checked(_PRCTL(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if how.get("capabilities") is not None:
        _keep_capabilities(int(how["capabilities"]))
    if how.get("landlock"):
        _restrict_files(how["landlock"])
    if how.get("seccomp"):
        _load_filter(base64.b64decode(how["seccomp"]))


def _load_filter(program: bytes) -> None:
    """Load a seccomp program, an array of ``struct sock_filter``."""
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: unsigned short len, padding, pointer to the instructions
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    _checked(_PRCTL(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0), "seccomp")


def _keep_capabilities(kept: int) -> None:
    """Drop every capability that is not in the set ``kept``, also for programs executed later."""
    _PRCTL(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in range(_LAST_CAPABILITY + 1):
        if not kept >> number & 1 and _PRCTL(_PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            break  # the kernel knows no further ones, or refuses without CAP_SETPCAP: then there are none to drop
    kept &= _permitted() if kept else 0
    low, high = kept & 0xFFFFFFFF, kept >> 32
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    data = struct.pack("6I", low, low, 0, high, high, 0)
    _checked(_SYSCALL(_SYS_CAPSET[os.uname().machine], header, data), "capset")


def _permitted() -> int:
    """Return the capabilities that this process has; it cannot keep others."""
    with open("/proc/self/status", "rb") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith(b"CapPrm:"))


def _restrict_files(how: dict[str, Any]) -> None:
    """Allow the accesses that the rules name below their paths, and refuse all others that the ruleset handles."""
    attributes = struct.pack("QQQ", how["files"], how["network"], how["scoped"])[: how["size"]]
    ruleset = _SYSCALL(_SYS_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    _checked(ruleset, "landlock_create_ruleset")
    for path, allowed in how["rules"]:
        _allow(ruleset, path, allowed)
    _checked(_SYSCALL(_SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str, allowed: int) -> None:
    try:
        below = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is gone meanwhile, so it needs no rule
    try:
        rule = struct.pack("=Qi", allowed, below)
        added = _SYSCALL(_SYS_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0)
        _checked(added, f"landlock_add_rule {path}")
    finally:
        os.close(below)


def _checked(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def main(arguments: list[str]) -> None:
    """Confine this process as the first argument says, in JSON, and execute the command that follows."""
    how = json.loads(arguments[0]) or {}
    argv, descriptors = with_filter(arguments[1:], how)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    confine(how)
    os.execv(argv[0], argv)  # noqa: S606  no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
