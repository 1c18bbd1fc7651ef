"""Filters of the system calls that a walled command must not make, as programs for seccomp.

A filter sees the number and the arguments of a call, not the paths behind pointers. It closes what mounts and Landlock
leave open: sockets, changes of metadata, keys, other processes' priorities. The program is classic BPF as in
``linux/filter.h`` and ``linux/seccomp.h``; the numbers of calls come from ``asm/unistd_64.h`` and
``asm-generic/unistd.h``.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from dataclasses import dataclass
from typing import Final

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""``AUDIT_ARCH_*`` of ``linux/audit.h``."""
_NEWEST: Final = 469
"""The newest call that this table was checked against, ``file_setattr``; later ones are not known to be harmless."""

_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_notify": (244, 184),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "uselib": (134, None),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vhangup": (153, 58),
}
"""Numbers of each call on x86_64 and on aarch64; None if it does not exist there."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MACHINE: Final = _names(
    "acct add_key adjtimex bpf clock_adjtime clock_settime delete_module fanotify_init finit_module init_module "
    "ioperm iopl kexec_file_load kexec_load keyctl open_by_handle_at perf_event_open quotactl quotactl_fd reboot "
    "request_key setdomainname sethostname settimeofday swapoff swapon syslog uselib userfaultfd vhangup"
)
"""Calls about the machine as a whole and the user's keys: no command of an agent needs them."""
_MOUNTS: Final = _names(
    "chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree open_tree_attr pivot_root setns "
    "umount2 unshare"
)
_OTHERS: Final = _names(
    "migrate_pages move_pages name_to_handle_at process_madvise process_vm_readv process_vm_writev ptrace"
)
_SCHEDULING: Final = _names("ioprio_set sched_setaffinity sched_setattr sched_setparam sched_setscheduler setpriority")
_METADATA: Final = _names(
    "chmod chown fchmod fchmodat fchmodat2 fchown fchownat file_setattr fremovexattr fsetxattr futimesat lchown "
    "lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat utime utimensat utimes"
)
"""Modes, owners, times and attributes of files, which Landlock does not guard."""
_SYSTEM_V: Final = _names(
    "mq_notify mq_open mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop semtimedop shmat shmctl shmget"
)
"""Calls that use such an object are included: its number can be guessed."""
_WATCHING: Final = _names("inotify_add_watch")
"""Landlock lets a process watch what others do with files that it must not read."""
_RINGS: Final = _names("io_uring_enter io_uring_register io_uring_setup")
"""They make other calls that bypass the filter."""
_SIGNALS: Final = _names("kill pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo tkill")

_NEW_NAMESPACES: Final = 0x7E020080
"""``CLONE_NEW*`` of ``linux/sched.h``: time, mount, cgroup, uts, ipc, user, pid and network."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FILE_ATTRIBUTES: Final = (0x40086602, 0x40046602, 0x401C5820, 0x40087602)
"""``FS_IOC_SETFLAGS``, the same for 32 bits, ``FS_IOC_FSSETXATTR`` and ``FS_IOC_SETVERSION`` of ``linux/fs.h``."""
_AF_INET, _AF_INET6, _AF_NETLINK = 2, 10, 16

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16


@dataclass(frozen=True, slots=True)
class Filter:
    """Choices for a filter: the calls that it refuses besides the calls about the machine itself."""

    reading: bool
    """For a command that nobody approved: no sockets, no namespaces, no access to other processes."""
    namespaces: bool
    """The command has its own namespaces: mounts, processes and System V objects need no further filter."""
    network: bool = True
    """Internet sockets are allowed; with ``namespaces``, the network namespace decides instead."""
    signals: bool = True
    """Something else keeps signals inside the wall."""
    truncate: bool = True
    """Something else keeps truncating by path inside the wall."""

    @property
    def refused(self) -> frozenset[str]:
        """The calls that are refused whatever their arguments."""
        refused = _MACHINE
        if self.reading:
            refused |= _MOUNTS | _OTHERS | _RINGS | {"socket"}
        if self.namespaces:
            return refused
        refused |= _MOUNTS | _RINGS
        if self.reading:
            refused |= _METADATA | _SYSTEM_V | _WATCHING | _SCHEDULING
            refused |= frozenset() if self.signals else _SIGNALS
        if not self.network:
            refused |= {"socket"}
        return refused | (frozenset() if self.truncate else {"truncate"})


def supported() -> bool:
    """Whether the numbers of this machine's calls are known."""
    return platform.machine() in _ARCHITECTURES


@functools.lru_cache(maxsize=16)
def program(rules: Filter, machine: str = "") -> bytes:
    """Return the filter as an array of ``struct sock_filter``, for this machine by default."""
    machine = machine or platform.machine()
    column = list(_ARCHITECTURES).index(machine)

    def numbers(names: frozenset[str]) -> list[int]:
        return sorted(number for name in names if (number := _NUMBERS[name][column]) is not None)

    code = [
        _instruction(_LOAD, _ARCHITECTURE_AT),
        _instruction(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _refuse(errno.ENOSYS),
        _instruction(_LOAD, _NUMBER_AT),
        _instruction(_AT_LEAST, _NEWEST + 1, 0, 1),  # includes the x32 calls of x86_64: their numbers have bit 30
        _refuse(errno.ENOSYS),
    ]
    for number in numbers(rules.refused):
        code += _when(number, [_refuse(errno.EPERM)])
    # A filter cannot see the arguments of clone3, which are in memory. Without it the C library uses clone.
    if rules.reading or not rules.namespaces:
        for number in numbers(frozenset({"clone3"})):
            code += _when(number, [_refuse(errno.ENOSYS)])
        for number in numbers(frozenset({"clone"})):
            code += _when(number, [_argument(0), _instruction(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _refuse(errno.EPERM)])
    code += _ioctls(numbers(frozenset({"ioctl"})), rules)
    if not rules.namespaces:
        code += _limits(numbers(frozenset({"prlimit64"})))
        if "socket" not in rules.refused:
            code += _internet_only(numbers(frozenset({"socket"})))
    return b"".join([*code, _instruction(_RETURN, _ALLOW)])


def _ioctls(numbers: list[int], rules: Filter) -> list[bytes]:
    """Refuse input into a terminal; for a reading command without its own mounts, refuse attributes of files too."""
    requests = [_TIOCSTI, _TIOCLINUX]
    if rules.reading and not rules.namespaces:
        requests += _FILE_ATTRIBUTES
    body = [_argument(1)]
    for request in requests:
        body += [_instruction(_EQUAL, request, 0, 1), _refuse(errno.EPERM)]
    return [line for number in numbers for line in _when(number, body)]


def _limits(numbers: list[int]) -> list[bytes]:
    """Refuse to read or change the limits of another process."""
    body = [_argument(0), _instruction(_EQUAL, 0, 1, 0), _refuse(errno.EPERM)]
    return [line for number in numbers for line in _when(number, body)]


def _internet_only(numbers: list[int]) -> list[bytes]:
    """Refuse every kind of socket except Internet sockets and netlink, which name look-ups need."""
    body = [_argument(0)]
    for kind in (_AF_INET, _AF_INET6, _AF_NETLINK):
        body += [_instruction(_EQUAL, kind, 0, 1), _instruction(_RETURN, _ALLOW)]
    return [line for number in numbers for line in _when(number, [*body, _refuse(errno.EACCES)])]


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """Run ``body`` for one call, with its number in the accumulator before and after."""
    return [_instruction(_EQUAL, number, 0, len(body) + 1), *body, _instruction(_LOAD, _NUMBER_AT)]


def _argument(place: int) -> bytes:
    return _instruction(_LOAD, _ARGUMENTS_AT + 8 * place)


def _refuse(code: int) -> bytes:
    return _instruction(_RETURN, _ERROR | code)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
