"""The user that the server runs as: the present user or, because PostgreSQL refuses root, a system user of its own."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmesh.domain.errors import EmbeddedServerError

SYSTEM_USER: Final = "agentmesh-pg"

URL_HINT: Final = "Or name a PostgreSQL server of your own: AGENTMESH_DATABASE_URL."

_SYSTEM_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_USERADD_SECONDS: Final = 10.0
_COMMAND_SECONDS: Final = 600.0
"""The longest that one program of PostgreSQL may take, including first start and crash recovery on a slow disk."""


class CannotRun(EmbeddedServerError):
    """The server's user may not read or run one of PostgreSQL's programs."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system user that owns the cluster and runs its server."""

    name: str
    uid: int
    gid: int
    switch: bool
    """Whether we are root, so that programs of the server are started as this user."""

    def run(self, *command: str | Path, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program as this user and return its exit code and output; raise if it does not even start.

        The environment is made here, because PGPORT, PGDATA or a LANG without a locale would change the server. The
        program gets a session of its own, so that Ctrl+C in a terminal does not reach it.
        """
        zone = {"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}
        try:
            return subprocess.run(
                [str(part) for part in command],
                env={"PATH": _SYSTEM_PATH, "LC_ALL": "C", **zone, **(environ or {})},
                cwd="/",
                umask=0o077,
                user=self.uid if self.switch else None,
                group=self.gid if self.switch else None,
                extra_groups=[] if self.switch else None,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            message = f"{command[0]} took more than {_COMMAND_SECONDS:.0f} s."
            raise EmbeddedServerError(message, hint="Look whether the disk is full or very slow.") from error
        except OSError as error:
            raise self._cannot_run(command[0], error) from error

    def powerless(self, error: OSError) -> EmbeddedServerError | None:
        """Return the error to raise if root lacks root's rights (a container without capabilities), else None."""
        if not self.switch or error.errno not in {errno.EPERM, errno.EINVAL}:
            return None
        message = f"Root may not act for the user {self.name} here, and PostgreSQL refuses root: {error.strerror}."
        return EmbeddedServerError(message, hint=f"Run agentmesh as an ordinary user. {URL_HINT}")

    def _cannot_run(self, program: str | Path, error: OSError) -> EmbeddedServerError:
        if told := self.powerless(error):
            return told
        kind = CannotRun if isinstance(error, PermissionError) else EmbeddedServerError
        message = f"The user {self.name} cannot run {program}: {error.strerror}."
        return kind(message, hint=f"Install agentmesh again (no wheels exist for musl). {URL_HINT}")

    def enter(self, folder: Path) -> None:
        """Raise if this user cannot enter the folder, and name the closed folder; no rights are changed."""
        closed = next((each for each in (*reversed(folder.parents), folder) if not self._may_enter(each)), None)
        # The mode bits do not show access control lists, so only an attempt gives the final answer.
        if closed and self.run("/bin/sh", "-c", 'cd -- "$0"', folder).returncode != 0:
            raise EmbeddedServerError(
                f"The embedded server's user {self.name} cannot enter {closed}.",
                hint=f"Choose another folder with AGENTMESH_DATA_DIR. {URL_HINT}",
            )

    def _may_enter(self, folder: Path) -> bool:
        facts = folder.stat()
        if facts.st_uid == self.uid:
            return bool(facts.st_mode & 0o100)
        return bool(facts.st_mode & (0o010 if facts.st_gid == self.gid else 0o001))


def existing_account() -> Account | None:
    """Return the server's account, or None if it has to be made first."""
    uid = os.geteuid()
    try:
        entry = pwd.getpwnam(SYSTEM_USER) if uid == 0 else pwd.getpwuid(uid)
    except KeyError:
        return None
    if entry.pw_uid == 0:
        raise EmbeddedServerError(
            f"The system user {SYSTEM_USER} is root itself, which PostgreSQL refuses.",
            hint=f"Give that user an id of its own. {URL_HINT}",
        )
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, switch=uid == 0)


def server_account() -> Account:
    """Return the server's account; as root, make its system user if it is missing."""
    account = existing_account()
    if account is None and os.geteuid() == 0:
        account = _make_system_user()
    if account is None:
        raise EmbeddedServerError(
            f"The user id {os.geteuid()} has no name on this system, and PostgreSQL does not run without one.",
            hint=f"Add it to /etc/passwd (`docker run --user` with a known name). {URL_HINT}",
        )
    return account


def _useradd() -> list[str]:
    """Return the command that makes the user, in the group of its name, which may be left over of an earlier one."""
    try:
        grp.getgrnam(SYSTEM_USER)
    except KeyError:
        group = ["--user-group"]
    else:
        group = ["--gid", SYSTEM_USER]
    home = ["--no-create-home", "--home-dir", "/nonexistent"]
    return ["useradd", "--system", *group, *home, "--shell", "/usr/sbin/nologin", SYSTEM_USER]


def _make_system_user() -> Account | None:
    program = shutil.which("useradd", path=_SYSTEM_PATH)
    complaint = "there is no useradd"
    deadline = time.monotonic() + _USERADD_SECONDS
    while program and time.monotonic() < deadline:
        made = subprocess.run([program, *_useradd()[1:]], capture_output=True, text=True, check=False)
        # Another process may have been quicker, or may hold the lock of /etc/passwd.
        if account := existing_account():
            return account
        complaint = made.stderr.strip().rstrip(".") or f"useradd ended with {made.returncode}"
        time.sleep(0.1)
    raise EmbeddedServerError(
        f"PostgreSQL refuses to run as root, and its user {SYSTEM_USER} could not be made: {complaint}.",
        hint=f"Make it (`{' '.join(_useradd())}`), or run agentmesh as an ordinary user. {URL_HINT}",
    )
