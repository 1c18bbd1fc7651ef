"""Try one thing that the kernel offers and no command behind a wall may do; say so where it was done.

Runs alone, as ``python3 attempt.py NAME ARGUMENTS``, inside the wall that is attacked: standard library only. It does
nothing that lasts on a machine without a wall. x86-64 numbers of system calls; on others these attempts say nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from calls import HERE, buffer, call  # type: ignore[import-not-found]
from on_files import by_handle, chattr, i386, mapped, memfd, reopen, watch  # type: ignore[import-not-found]

ESCAPED = "escaped-{}".format(40 + 2)  # noqa: UP032  the word must not stand in this file: attackers may print it


# Namespaces, mounts, roots


def clone3_user() -> None:
    """Begin a process in a user namespace of its own by the newest call."""
    arguments = buffer(struct.pack("11Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0), 88)
    if call(435, arguments, 88) == 0:
        os._exit(0)


def mount_tmpfs() -> None:
    """Put a file system over a folder, and take it away."""
    call(165, b"none", b"empty", b"tmpfs", 0, None)
    call(166, b"empty", 2)


def mount_bind() -> None:
    """Show a folder at another place, and take it away."""
    call(165, b"src", b"empty", None, 4096, None)
    call(166, b"empty", 2)


def setns(pid: str) -> None:
    """Join the mounts of a process outside."""
    call(308, os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), 0)


# Sockets


def tcp(port: str, family: socket.AddressFamily = socket.AF_INET, address: str = "127.0.0.1", kind: int = 0) -> None:
    """Connect."""
    socket.socket(family, socket.SOCK_STREAM, kind).connect((address, int(port)))


def fastopen(port: str) -> None:
    """Connect by sending."""
    socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", int(port)))


def udp(port: str) -> None:
    """Send a datagram."""
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(port)))
    print(ESCAPED)


def unix(path: str) -> None:
    """Connect to a socket with a path."""
    socket.socket(socket.AF_UNIX).connect(path)


def unix_by_fd(folder: str, name: str) -> None:
    """Connect through a descriptor of its folder."""
    unix(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/{name}")


def datagram(path: str) -> None:
    """Send to a socket with a path."""
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", path)


def database(folder: str) -> None:
    """Connect to whatever PostgreSQL listens below a folder."""
    found = [path for path in Path(folder).rglob(".s.PGSQL.*") if not path.name.endswith(".lock")]
    for path in found:
        unix(str(path))
    if not found:
        raise OSError("there is none")


def netlink() -> None:
    """Ask the kernel which interfaces there are besides the loopback."""
    if len(socket.if_nameindex()) < 2:
        raise OSError("there is only the loopback")


# Processes


def environ(pid: str) -> None:
    """Show what another process was started with."""
    print(Path("/proc", pid, "environ").read_bytes())


def memory(pid: str) -> None:
    """Read the memory of another process through /proc."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as file:
        file.seek(int(maps.readline().split("-")[0], 16))
        file.read(4)


def kill_worker() -> None:
    """Look for a process of agentmesh, and see whether it can be signalled."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            if b"agentmesh" in words or any(word.endswith(b"/spawner.py") for word in words):
                os.kill(int(entry), 0)
                return
    raise OSError("there is none")


def ptrace(pid: str) -> None:
    """Attach to another process, and let go."""
    call(101, 16, int(pid), None, None)
    os.waitpid(int(pid), 0x40000000)
    call(101, 17, int(pid), None, None)


def memory_of(number: int, pid: str) -> None:
    """Copy memory from or to another process, at an address that both know."""
    with open("/proc/self/maps") as maps:
        own = int(next(line for line in maps if "heap" in line or "rw-p" in line).split("-")[0], 16)
    with open(f"/proc/{pid}/maps") as maps:
        theirs = int(next(line for line in maps if "rw-p" in line).split("-")[0], 16)
    here, there = buffer(struct.pack("2Q", own, 0), 16), buffer(struct.pack("2Q", theirs, 0), 16)
    call(number, int(pid), here, 1, there, 1, 0)


def pidfd_getfd(pid: str) -> None:
    """Take a descriptor of another process."""
    call(438, call(434, int(pid), 0), 0, 0)


def fcntl_setown(pid: str) -> None:
    """Let the kernel signal another process when a pipe can be read."""
    read, write = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, int(pid))
    fcntl.fcntl(read, 10, signal.SIGUSR1)
    fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(write, b"x")
    raise OSError("whether it was signalled is seen outside")


def set_time() -> None:
    """Set the clock to what it shows."""
    call(227, 0, buffer(struct.pack("2q", *divmod(time.time_ns(), 10**9)), 16))


_NOBODY = 2**32 - 1
_ENTRIES = ((1, 6, _NOBODY), (2, 4, 1), (4, 4, _NOBODY), (16, 4, _NOBODY), (32, 4, _NOBODY))
_ACL = struct.pack("I", 2) + b"".join(struct.pack("HHI", *each) for each in _ENTRIES)
"""An access list that lets user 1 read."""


# Every attempt by its name; those that return have succeeded.

_RAW: dict[str, tuple[int, tuple[int | bytes | None, ...]]] = {
    "unshare_user": (272, (0x10000000,)),
    "unshare_mount": (272, (0x20000,)),
    "unshare_net": (272, (0x40000000,)),
    "remount": (165, (None, b"/", None, 0x20 | 0x1000, None)),
    "open_tree": (428, (HERE, b".", 1)),
    "fsopen": (430, (b"tmpfs", 0)),
    "setuid": (105, (1,)),
    "setgid": (106, (1,)),
    "setgroups": (116, (0, None)),
    "bounding": (157, (24, 0, 0, 0, 0)),
    "securebits": (157, (28, 1, 0, 0, 0)),
    "syslog": (103, (10, None, 0)),
}


def raw(name: str) -> Callable[..., None]:
    """Return the attempt that is one system call."""
    number, arguments = _RAW[name]
    return lambda: call(number, *arguments) and None


_NAMED: dict[str, Callable[..., object]] = {
    **{name: raw(name) for name in _RAW},
    **{f.__name__: f for f in (clone3_user, mount_tmpfs, mount_bind, setns, tcp, fastopen, unix)},
    **{f.__name__: f for f in (unix_by_fd, datagram, database, netlink, environ, memory, kill_worker, ptrace)},
    **{f.__name__: f for f in (pidfd_getfd, fcntl_setown, udp, chattr, reopen, by_handle, watch, memfd, i386)},
    "chroot": lambda: os.chroot("."),
    "abstract": lambda name: unix("\0" + name),
    "tcp6": lambda port: tcp(port, socket.AF_INET6, "::ffff:127.0.0.1"),
    "mptcp": lambda port: tcp(port, kind=262),
    "packet": lambda: socket.socket(17, socket.SOCK_RAW),
    "readv": lambda pid: memory_of(310, pid),
    "writev": lambda pid: memory_of(311, pid),
    "pidfd_getfd": pidfd_getfd,
    "kill0": lambda pid: os.kill(int(pid), 0),
    "tgkill": lambda pid: call(234, int(pid), int(pid), signal.SIGTERM),
    "sigqueue": lambda pid: call(129, int(pid), signal.SIGTERM, buffer(struct.pack("3i", 15, 0, -1), 128)),
    "pidfd": lambda pid: signal.pidfd_send_signal(os.pidfd_open(int(pid)), signal.SIGTERM),
    "kcmp": lambda pid: call(312, int(pid), int(pid), 0, 0, 0),
    "setpriority": lambda pid: os.setpriority(os.PRIO_PROCESS, int(pid), 1),
    "affinity": lambda pid: os.sched_setaffinity(int(pid), os.sched_getaffinity(int(pid))),
    "scheduler": lambda pid: os.sched_setscheduler(int(pid), os.SCHED_BATCH, os.sched_param(0)),
    "prlimit": lambda pid: resource.prlimit(int(pid), resource.RLIMIT_CORE, (0, 0)),
    "ioprio": lambda pid: call(251, 1, int(pid), 3 << 13),
    "move_pages": lambda pid: call(279, int(pid), 0, None, None, None, 0),
    "utime": lambda path: os.utime(path, (1, 1)),
    "utimensat": lambda path: os.utime(os.path.basename(path), (1, 1), dir_fd=os.open(os.path.dirname(path) or ".", 0)),
    "chmod": lambda path: os.chmod(path, 0o777),
    "fchmod": lambda path: os.fchmod(os.open(path, os.O_RDONLY), 0o777),
    "fchmodat2": lambda path: call(452, HERE, path.encode(), 0o777, 0),
    "chown": lambda path: os.chown(path, 1, 1),
    "setxattr": lambda path: os.setxattr(path, "user.x", b"y"),
    "fsetxattr": lambda path: os.setxattr(os.open(path, os.O_RDONLY), "user.x", b"y"),
    "setxattr_on_fd_path": lambda path: os.setxattr(f"/proc/self/fd/{os.open(path, os.O_PATH)}", "user.x", b"y"),
    "acl": lambda path: os.setxattr(path, "system.posix_acl_access", _ACL),
    "truncate": lambda path: os.truncate(path, 0),
    "link": lambda path: os.link(path, "linked"),
    "link_out": lambda: os.link("a", "out/linked"),
    "rename": lambda path: os.rename(path, f"{path}.renamed"),
    "exchange": lambda one, other: call(316, HERE, one.encode(), HERE, other.encode(), 2),
    "tmpfile": lambda: os.write(os.open(".", os.O_TMPFILE | os.O_WRONLY), b"x"),
    "mmap": mapped,
    "copy_range": lambda path: os.copy_file_range(os.open("b.py", 0), os.open(path, os.O_WRONLY), 1),
    "key_read": lambda key: call(250, 11, int(key), buffer(), 4096, 0),
    "key_user": lambda: call(248, b"user", b"agentmesh-attempt", b"x", 1, -4),
    "see_shm": lambda number: call(30, int(number), None, 0o10000),
    "see_mqueue": lambda name: call(240, name[1:].encode(), os.O_RDONLY, 0, None),
    "flock": lambda path: fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB),
    "lease": lambda path: fcntl.fcntl(os.open(path, os.O_RDONLY), 1024, fcntl.F_RDLCK),
    "fanotify": lambda: call(300, 0, 0),
    "sethostname": lambda: socket.sethostname(socket.gethostname()),
    "settime": set_time,
    "mknod_null": lambda: os.mknod("device", 0o20666, os.makedev(1, 3)),
    "mknod_disk": lambda: os.mknod("device", 0o60666, os.stat("/").st_dev),
    "has_capability": lambda: _says("CapEff", lambda value: int(value, 16) != 0),
    "may_gain": lambda: _says("NoNewPrivs", lambda value: value == "0"),
    "memfd_touch": memfd,
}


def _says(field: str, test: Callable[[str], bool]) -> None:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    if not test(line.split()[1]):
        raise OSError("it is as it should be")


def main() -> None:
    """Make the attempt that the arguments name."""
    name, *arguments = sys.argv[1:]
    if name.startswith("uring"):
        import uring  # type: ignore[import-not-found]

        attempt = getattr(uring, name)
    else:
        attempt = _NAMED[name]
    try:
        attempt(*arguments)
    except OSError as error:
        print(f"{name}: {error}")
        raise SystemExit(1) from None
    print(ESCAPED)


if __name__ == "__main__":
    main()
