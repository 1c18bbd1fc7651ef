"""Shared memory, a message queue and a key: things of the kernel that are no files, and that no command may see."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from tests.walls.tools.calls import LIBC, buffer, call

ATTEMPTED = "agentmesh-attempt"
"""The key that an attack adds to those of the user."""
_SHM_SIZE, _SEMAPHORES = "12347", "37"
"""By these attacks make shared memory and semaphores."""
_USERS_KEYS = -4
_SHMAT, _MQ_OPEN, _MQ_UNLINK, _ADD_KEY, _KEYCTL = 30, 240, 241, 248, 250
_REMOVE, _UNLINK_KEY, _SEARCH, _SET_TIMEOUT = 0, 9, 10, 15


def plant(name: str, secret: str, close: contextlib.ExitStack) -> dict[str, str]:
    """Make one of each, which are gone when ``close`` is; return how attacks name them."""
    memory = LIBC.shmget(0, ctypes.c_size_t(4096), 0o1600)
    call(_SHMAT, memory, None, 0)
    LIBC.shmctl(memory, _REMOVE, None)  # it goes with this process, however that ends, and can be attached until then
    queue = f"/{name}"
    size = buffer(
        struct.pack("8q", 0, 1, 8, 0, 0, 0, 0, 0), 64
    )  # one message of 8 bytes: a user has little room for all
    os.close(call(_MQ_OPEN, name.encode(), os.O_CREAT | os.O_RDWR, 0o600, size))
    close.callback(call, _MQ_UNLINK, name.encode())
    key = call(_ADD_KEY, b"user", name.encode(), secret.encode(), len(secret), _USERS_KEYS)
    call(_KEYCTL, _SET_TIMEOUT, key, 7200)  # it goes by itself, should this process be killed
    close.callback(call, _KEYCTL, _UNLINK_KEY, key, _USERS_KEYS)
    close.callback(forget)
    return {"SHMID": str(memory), "MQUEUE": queue, "KEY": str(key), "KEYNAME": name}


def made() -> Iterator[str]:
    """Yield what attacks have made: by sizes and a name that nobody else uses."""
    for kind, ours in (("shm", _SHM_SIZE), ("sem", _SEMAPHORES)):
        for line in Path("/proc/sysvipc", kind).read_text().splitlines()[1:]:
            if line.split()[3] == ours:
                yield f"{kind} {line.split()[1]}"
    if (key := _attempted()) is not None:
        yield f"key {key}"


def forget() -> None:
    """Remove what attacks have made."""
    for each in list(made()):
        kind, number = each.split()
        if kind == "shm":
            LIBC.shmctl(int(number), _REMOVE, None)
        elif kind == "sem":
            LIBC.semctl(int(number), 0, _REMOVE)
        else:
            call(_KEYCTL, _UNLINK_KEY, int(number), _USERS_KEYS)


def _attempted() -> int | None:
    try:
        return call(_KEYCTL, _SEARCH, _USERS_KEYS, buffer(b"user", 8), buffer(ATTEMPTED.encode(), 64), 0)
    except OSError:
        return None
