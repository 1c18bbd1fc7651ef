"""The folders and files of one embedded server, and the checks that nobody else can enter them."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentmesh.domain.errors import EmbeddedServerError
from agentmesh.store.embedded.account import Account

SOCKET_NAME: Final = ".s.PGSQL.5432"

_SUN_PATH_BYTES: Final = 103
"""The longest path of a Unix socket that every system takes: 107 bytes on Linux, 103 on macOS."""


class Places:
    """Where the server of a data folder keeps its files. Making an instance touches no file."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.home = data_dir / "postgres"
        self.cluster = self.home / "data"
        self.cluster_new = self.home / "data.new"
        self.programs = self.home / "programs"
        self.logs = self.home / "log"
        self.start_log = self.logs / "start.log"
        self.start_lock = self.home / "start.lock"
        self.shares = self.home / "shares.lock"
        self.keeper_lock = self.home / "keeper.lock"
        self.keeper_wish = self.home / "keeper.seconds"
        self.pid_file = self.cluster / "postmaster.pid"
        self.socket_dir = self._socket_dir()

    @property
    def server_log(self) -> Path | None:
        """The newest log file of the server."""
        return max(self.logs.glob("server-*.log"), default=None)

    def _socket_dir(self) -> Path:
        """Return the folder of the socket, which is the same for every process, whatever its environment.

        XDG_RUNTIME_DIR differs between a desktop, cron and ssh, and at logout it vanishes with the server in it.
        """
        inside = self.home / "run"
        if "," not in str(inside) and len(os.fsencode(inside / SOCKET_NAME)) <= _SUN_PATH_BYTES:
            return inside  # a comma would separate two hosts for libpq, in whatever way it is written
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:16]
        return Path("/tmp") / f"agentmesh-{os.geteuid()}-{digest}"  # noqa: S108  make_private checks whose it is

    def prepare(self, account: Account) -> None:
        """Make the folders that must exist before anything else, or raise; safe if many processes do so at once."""
        if account.switch:
            account.enter(next(each for each in self.data_dir.parents if each.exists()))
        try:
            self._make_data_dir(account)
            if account.switch and self.data_dir.stat().st_uid == 0 and self._ours_alone():
                make_private(self.data_dir, account)
            make_private(self.home, account)
        except OSError as error:
            raise account.powerless(error) or EmbeddedServerError(
                f"The embedded server's folder {self.home} cannot be used: {error.strerror}.",
                hint="Choose another folder with AGENTMESH_DATA_DIR.",
            ) from error
        if account.switch:
            account.enter(self.home)

    def _make_data_dir(self, account: Account) -> None:
        for folder in (*reversed(self.data_dir.parents), self.data_dir):
            if not folder.exists():
                folder.mkdir(exist_ok=True)
                if account.switch:
                    folder.chmod(0o755)  # root's umask may be 077, and the server's user has to pass

    def _ours_alone(self) -> bool:
        return {each.name for each in self.data_dir.iterdir()} <= {self.home.name}


def make_private(folder: Path, account: Account) -> None:
    """Make the folder, or check that only the account can enter it; raise if it belongs to another user."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    facts = folder.lstat()
    ours = facts.st_uid == account.uid or (account.switch and facts.st_uid == 0)
    if not stat.S_ISDIR(facts.st_mode) or not ours:
        raise EmbeddedServerError(
            f"{folder} is not a folder of the user {account.name}, so the embedded server does not trust it.",
            hint="Remove it, or choose another folder with AGENTMESH_DATA_DIR.",
        )
    # The umask may have removed more than the rights of others, and root's folder becomes the server's.
    if stat.S_IMODE(facts.st_mode) != 0o700:
        folder.chmod(0o700)
    if facts.st_uid != account.uid:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)


def is_private(folder: Path, account: Account | None) -> bool:
    """Return whether the folder exists and only the account can enter it."""
    try:
        facts = folder.lstat()
    except OSError:
        return False
    return (
        account is not None
        and stat.S_ISDIR(facts.st_mode)
        and ((facts.st_uid, stat.S_IMODE(facts.st_mode) & 0o077) == (account.uid, 0))
    )
