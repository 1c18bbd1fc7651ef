"""The ground of an attack: a home with a working directory in it, secrets around it, and everything that is watched.

Each place has a file with a word of its own, so that an answer which holds one says what was read. What is watched is
compared before and after: files with all that a look at them shows, connections, a process that can be hurt.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.walls import kernel_objects
from tests.walls.cases import Case
from tests.walls.workdir import fill

MADE = "made-"
"""Begins the name of what a case makes."""
ESCAPED = "escaped-42"
"""What a case prints that did something which leaves no file; no command holds this word itself."""


_HASHED = 1 << 20
"""Bytes of the largest file whose content is compared; of larger ones the size and the times are."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at everything watched has seen."""

    files: dict[str, tuple[object, ...]]
    kernel: frozenset[str]

    def changes(self, later: Look) -> list[str]:
        """Return what differs in a later look, in words."""
        paths = sorted({*self.files, *later.files})
        words = []
        for path in paths:
            before, after = self.files.get(path), later.files.get(path)
            if before != after:
                what = "made" if before is None else "removed" if after is None else "changed"
                words.append(f"{what}: {path}")
        return words + [f"made in the kernel: {each}" for each in sorted(later.kernel - self.kernel)]


class Ground:
    """Places, secrets, listeners and a bystander; use it as a context manager."""

    def __init__(self) -> None:
        # Not below /tmp: a command has a /tmp of its own, which would hide everything at once.
        self.root = Path(tempfile.mkdtemp(prefix="agentmesh-walls-", dir="/var/tmp"))
        self.root.chmod(0o755)  # as root the embedded server belongs to a user of its own, who has to pass
        self.home, self.data, self.config = (self.root / name for name in ("home", "data", "config"))
        self.beside = self.home / "projects"
        self.work = self.beside / "work"
        folders = (("tmp", "/tmp"), ("shm", "/dev/shm"), ("vartmp", "/var/tmp"))
        self.outside = {name: Path(tempfile.mkdtemp(prefix="agentmesh-walls-", dir=at)) for name, at in folders}
        self.planted = self.data / "planted"
        self.places = {"home": self.home, "beside": self.beside, "config": self.config, "planted": self.planted}
        self.places |= self.outside
        self.canaries = {
            name: f"canary-{name}-{secrets.token_hex(6)}" for name in (*self.places, "key", "process", "socket", "rows")
        }
        self.argument = f"argument-{secrets.token_hex(6)}"
        self._listening: dict[str, socket.socket] = {}
        self._bystander: subprocess.Popen[bytes] | None = None
        self._close = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for name, place in self.places.items():
            place.mkdir(parents=True, exist_ok=True)
            (place / "secret.txt").write_text(self.canaries[name] + "\n")
            (place / self.canaries[name]).write_text("its name says it\n")
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh/id_rsa").write_text(self.canaries["home"] + "\n")
        (self.home / ".gitconfig").write_text("[user]\n\tname = Tester\n\temail = tester@example.com\n")
        (self.beside / "other").mkdir()
        (self.beside / "other/file").write_text("x\n")
        (self.beside / "empty").mkdir()
        (self.home / self.canaries["process"]).mkdir()
        (self.home / "held").write_text(self.canaries["process"] + "\n")
        self._repository()
        fill(self.work, self.home)
        self._pristine = self.root / "pristine"
        shutil.copytree(self.home, self._pristine, symlinks=True)
        self._listen()
        self._objects = kernel_objects.plant(self.argument, self.canaries["process"], self._close)
        return self

    def __exit__(self, *_: object) -> None:
        self._end_bystander()
        self._close.close()
        for folder in (self.root, *self.outside.values()):
            shutil.rmtree(folder, ignore_errors=True)

    def restore(self) -> None:
        """Make the home and what is in it anew, after an attack that had an effect."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree(self._pristine, self.home, symlinks=True)
        for name, place in self.places.items():
            for left in place.glob(f"{MADE}*"):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
            (place / "secret.txt").unlink(missing_ok=True)
            (place / "secret.txt").write_text(self.canaries[name] + "\n")
        kernel_objects.forget()
        self._listen()

    def words(self, case: Case) -> dict[str, str]:
        """Return what the words of a case stand for; places outside take turns."""
        places = list(self.places.values())
        place = places[case.number % len(places)]
        made = f"{MADE}{case.name}"
        words = {"IN": made, "OUT": str(place / made), "SECRET": str(place / "secret.txt"), "WORK": str(self.work)}
        words |= {name.upper(): str(path) for name, path in {**self.places, "data": self.data}.items()}
        words |= {"SOCKET": str(self.home / "listening"), "DGRAM": str(self.home / "datagrams")}
        words |= {"PORT": str(self._port("tcp")), "UDP": str(self._port("udp")), "ABSTRACT": self._abstract}
        words |= {"PID": str(self.bystander().pid), "ARGUMENT": self.argument, "PG": str(self.data / "postgres/run")}
        tool = str(Path(sys.executable).parent / "agentmesh")
        return words | {"AGENTMESH": tool, "PSQL": shutil.which("psql") or "psql", **self._objects}

    # Looking

    def look(self, *, work: bool = True) -> Look:
        """Look at everything that is watched; ``work=False``: not at the working directory, which may be written to."""
        watched = [self.home, self.config, self.planted, *self.outside.values()]
        spared = None if work else self.work
        files = {path: seen for folder in watched for path, seen in _files(folder, spared)}
        return Look(files, frozenset(kernel_objects.made()))

    def connections(self) -> list[str]:
        """Return which listeners were connected to since the last time."""
        return [name for name, listener in self._listening.items() if _arrived(listener)]

    def secrets_in(self, text: str) -> list[str]:
        """Return the places whose secret a text holds, and that it says it escaped."""
        found = [f"read: {name}" for name, canary in self.canaries.items() if canary in text]
        return [*found, "escaped"] if ESCAPED in text else found

    def bystander(self) -> subprocess.Popen[bytes]:
        """Return the process that an attack may try to hurt or to read; a new one if it was hurt."""
        if self._bystander is None or self.hurt():
            self._end_bystander()
            self._bystander = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-c",
                    _BYSTANDER,
                    self.argument,
                    self.canaries["process"],
                    str(self.home / "held"),
                ],
                cwd=self.home / self.canaries["process"],
                env={"PATH": "/usr/bin:/bin", "SECRET": self.canaries["process"]},
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            assert self._bystander.stdout
            assert self._bystander.stdout.readline() == b"ready\n"
        return self._bystander

    def _end_bystander(self) -> None:
        if self._bystander:
            self._bystander.kill()
            self._bystander.communicate()

    def hurt(self) -> str:
        """Return what was done to the bystander; empty if nothing was."""
        process = self._bystander
        if process is None:
            return ""
        if process.poll() is not None:
            return f"ended with {process.returncode}"
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        if state[0] in "Tt":
            return "stopped"
        return "" if (state[15], os.sched_getscheduler(process.pid)) == ("20", 0) else "given another priority"

    # Making

    def _repository(self) -> None:
        other = self.home / "repo"
        other.mkdir()
        (other / "secret.txt").write_text(self.canaries["home"] + "\n")
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run(["git", *words], cwd=other, env=environ, check=True)

    def _listen(self) -> None:
        for name, kind, address in (
            ("path", socket.SOCK_STREAM, str(self.home / "listening")),
            ("datagrams", socket.SOCK_DGRAM, str(self.home / "datagrams")),
        ):
            if old := self._listening.pop(name, None):
                old.close()
            Path(address).unlink(missing_ok=True)
            self._listening[name] = self._bound(socket.AF_UNIX, kind, address)
        if "tcp" not in self._listening:
            self._abstract = f"agentmesh-walls-{secrets.token_hex(6)}"
            self._listening |= {
                "tcp": self._bound(socket.AF_INET6, socket.SOCK_STREAM, ("::", 0)),
                "udp": self._bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
                "abstract": self._bound(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self._abstract),
                "hidden": self._bound(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.canaries["socket"]),
            }

    def _bound(self, family: int, kind: int, address: object) -> socket.socket:
        made = self._close.enter_context(socket.socket(family, kind))
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(address)  # type: ignore[arg-type]
        made.setblocking(False)
        if kind == socket.SOCK_STREAM:
            made.listen(128)
        return made

    def _port(self, name: str) -> int:
        return int(self._listening[name].getsockname()[1])


_BYSTANDER = """
import signal, sys
file = open(sys.argv[3])
secret = sys.argv[2]
print("ready", flush=True)
while True:
    signal.pause()
"""


def _files(folder: Path, spared: Path | None) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield everything below a folder, and the folder, with all that can be seen of it but when it was read."""
    todo = [folder]
    while todo:
        path = todo.pop()
        if path == spared:
            continue
        seen = path.lstat()
        shown: list[object] = [
            seen.st_mode,
            seen.st_uid,
            seen.st_gid,
            seen.st_mtime_ns,
            seen.st_ctime_ns,
            seen.st_nlink,
        ]
        if stat.S_ISREG(seen.st_mode) and seen.st_size <= _HASHED:
            shown.append(hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest())
        elif stat.S_ISLNK(seen.st_mode):
            shown.append(os.readlink(path))
        elif stat.S_ISDIR(seen.st_mode):
            todo += path.iterdir()
        yield str(path), tuple(shown)


def _arrived(listener: socket.socket) -> bool:
    """Whether anything came to a listener; takes all of it."""
    arrived = False
    with contextlib.suppress(BlockingIOError):
        while True:
            if listener.type == socket.SOCK_DGRAM:
                listener.recv(1)
            else:
                listener.accept()[0].close()
            arrived = True
    return arrived
