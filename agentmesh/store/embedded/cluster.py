"""One PostgreSQL cluster: how it is made, started and stopped. Callers hold the start lock for all but looking.

PostgreSQL's own ``initdb`` and ``pg_ctl`` do the work. This module handles the cases in which they would do harm or
fail.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.pq import PGconn, Ping

from agentmesh.domain.errors import EmbeddedServerError
from agentmesh.domain.text import printable
from agentmesh.store.embedded import processes
from agentmesh.store.embedded.account import URL_HINT, Account
from agentmesh.store.embedded.places import Places, is_private, make_private
from agentmesh.store.embedded.programs import ServerPrograms, server_programs

DATABASE: Final = "agentmesh"
OWNER: Final = "agentmesh"

_TUNABLE: Final = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "autovacuum_naptime": "10s",  # with the default of a minute, the table of waits grows a thousandfold
}
"""Written once to ``postgresql.auto.conf``, so that ``alter system`` can change them."""

_START_SECONDS: Final = 120
_SILENT_SECONDS: Final = 20.0
"""A server that recovers from a crash says so and gets longer; one that says nothing is frozen."""
_STOP_SECONDS: Final = 30.0
_QUIT_SECONDS: Final = 10.0
_LOG_FILES: Final = 7
_LOG_LINES: Final = 12
_LEAST_FREE: Final = 16 << 20
"""Bytes: one more file of PostgreSQL's write-ahead log."""


class Cluster:
    """The cluster of one data folder. Making an instance touches no file."""

    def __init__(self, places: Places, bin_dir: Path, settings: Mapping[str, str]) -> None:
        self._places = places
        self._bin_dir = bin_dir
        self._settings = dict(settings)

    def url(self, *, role: str = OWNER, database: str = DATABASE) -> str:
        """Return the URL of a database of the cluster."""
        folder = quote(str(self._places.socket_dir), safe="")
        return f"postgresql://{quote(role, safe='')}@/{quote(database, safe='')}?host={folder}&port=5432"

    def ping(self, account: Account | None) -> Ping:
        """Return whether the server answers, refuses connections for now (starting, stopping), or is not there."""
        if not is_private(self._places.socket_dir, account):
            return Ping.NO_RESPONSE
        return Ping(PGconn.ping(f"{self.url(database='postgres')}&connect_timeout=2".encode()))

    def postmaster(self) -> int | None:
        """Return the process id of the running server, or None."""
        return processes.postmaster(self._places.cluster)

    def ensure_running(self, account: Account) -> None:
        """Start the server unless it runs, wait until it takes connections, and make the database if it is missing."""
        make_private(self._places.socket_dir, account)  # before anything is sent to a socket in it
        began = time.monotonic()
        while (answer := self.ping(account)) is not Ping.OK or not self._places.pid_file.exists():
            # A server that answers without its pid file has lost its folder, so it is no longer the cluster's.
            if answer is not Ping.REJECT and self.postmaster() is None:
                self._start(account)
            elif time.monotonic() - began > (_START_SECONDS if answer is Ping.REJECT else _SILENT_SECONDS):
                raise self._unanswering(answer)
            time.sleep(0.01)
        self._ensure_database()

    def stop(self) -> bool:
        """Stop the server; return False if it does not run. Nothing that was committed is lost."""
        pid = self.postmaster()
        if pid is None:
            return False
        # Fast ends every session and writes a checkpoint. Immediate leaves that to the recovery at the next start.
        fast, immediate = (signal.SIGINT, _STOP_SECONDS), (signal.SIGQUIT, _QUIT_SECONDS)
        if any(processes.stop(self._places.cluster, *way) for way in (fast, immediate)):
            return True
        raise EmbeddedServerError(
            f"The embedded server (process {pid}) does not stop.",
            hint=self._with_log(f"See whether process {pid} is frozen (`kill -CONT {pid}`) or its disk hangs."),
        )

    def _start(self, account: Account) -> None:
        places = self._places
        self._clear_crash(account)
        programs = server_programs(self._bin_dir, account, places.programs)
        if not places.cluster.exists():
            self._initdb(account, programs)
        self._check_version(programs)
        make_private(places.logs, account)
        places.start_log.unlink(missing_ok=True)
        for old in sorted(places.logs.glob("server-*.log"))[:-_LOG_FILES]:
            old.unlink()
        pg_ctl, options = programs.folder / "pg_ctl", self._start_options(programs)
        started = account.run(pg_ctl, "start", "-w", "-s", *options, environ={"PGDATA": str(places.cluster)})
        if started.returncode != 0:
            message = f"The embedded PostgreSQL does not start: {_reason(started)}"
            raise EmbeddedServerError(message, hint=self._about_space() or self._with_log(URL_HINT))

    def _unanswering(self, answer: Ping) -> EmbeddedServerError:
        pid = self.postmaster()
        if answer is Ping.REJECT:
            message = f"The embedded server (process {pid}) is still starting or stopping."
            return EmbeddedServerError(message, hint=self._with_log("Try again; after a crash it can take minutes."))
        message = f"The embedded server (process {pid}) does not answer."
        advice = "`agentmesh db stop --force` ends it; the next command starts it again."
        return EmbeddedServerError(message, hint=self._with_log(advice))

    def _clear_crash(self, account: Account) -> None:
        """Remove what a server that did not shut down left behind.

        PostgreSQL itself would take any running process with that number for its postmaster and refuse to start.
        """
        stale = (
            self._places.pid_file,
            *(self._places.socket_dir / name for name in (".s.PGSQL.5432", ".s.PGSQL.5432.lock")),
        )
        if not self._places.cluster.exists() or any(each.exists() for each in stale):
            processes.end_leftovers(self._places.cluster, account.uid)
            for each in stale:
                each.unlink(missing_ok=True)

    def _initdb(self, account: Account, programs: ServerPrograms) -> None:
        """Make the cluster under another name and rename it, so that a killed initdb leaves no half of one."""
        fresh = self._places.cluster_new
        if fresh.exists():
            shutil.rmtree(fresh)
        # From version 17 on, PostgreSQL has its own C.UTF-8, so no locale of the system is needed.
        builtin = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
        made = account.run(
            programs.folder / "initdb",
            *("-D", fresh, "-U", OWNER, "--encoding=UTF8", "--auth-local=trust", "--auth-host=reject"),
            *(builtin if programs.major >= 17 else ("--locale=C.UTF-8",)),
            *(("--no-sync",) if self._settings.get("fsync") == "off" else ()),
        )
        if made.returncode != 0:
            message = f"The embedded PostgreSQL cannot be set up: {_reason(made)}"
            raise EmbeddedServerError(message, hint=self._about_space() or URL_HINT)
        with (fresh / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in _TUNABLE.items())
        fresh.rename(self._places.cluster)

    def _check_version(self, programs: ServerPrograms) -> None:
        try:
            made_by = (self._places.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
        except FileNotFoundError as error:
            raise EmbeddedServerError(
                f"{self._places.cluster} is not a PostgreSQL cluster.",
                hint="Move that folder away, or choose another with AGENTMESH_DATA_DIR.",
            ) from error
        if made_by != str(programs.major):
            raise EmbeddedServerError(
                f"The data in {self._places.cluster} are PostgreSQL {made_by}'s, the programs are {programs.version}.",
                hint=f"Take them over with pg_dump of PostgreSQL {made_by}, or choose another folder with"
                " AGENTMESH_DATA_DIR.",
            )

    def _start_options(self, programs: ServerPrograms) -> tuple[str, ...]:
        """Return pg_ctl's options for a start.

        Settings that must hold are on the server's command line, which no file overrides.
        """
        places = self._places
        socket_dir = str(places.socket_dir).replace('"', '""')
        settings = {
            "logging_collector": "on",
            "log_directory": str(places.logs),
            "log_filename": "server-%Y-%m-%d.log",
            "log_rotation_size": "0",
            **self._settings,
            "listen_addresses": "",
            "port": "5432",
            "unix_socket_directories": f'"{socket_dir}"',
            "unix_socket_permissions": "0700",
        }
        options = ["-D", str(places.cluster)]
        for name, value in settings.items():
            options += ["-c", f"{name}={value}"]
        # pg_ctl hands its words to a shell: -p and -l inside double quotes, -o as it is. So the folder goes into -o.
        server, log = (
            re.sub(r'([$`"\\])', r"\\\1", str(each)) for each in (programs.folder / "postgres", places.start_log)
        )
        return ("-p", server, "-l", log, "-o", shlex.join(options), "-t", str(_START_SECONDS))

    def _ensure_database(self) -> None:
        try:
            with psycopg.connect(self.url(database="postgres"), autocommit=True, connect_timeout=5) as connection:
                there = connection.execute("select from pg_database where datname = %s", [DATABASE]).rowcount
                if not there:
                    connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))
        except psycopg.Error as error:
            raise EmbeddedServerError(
                f"The embedded server refuses its own owner: {printable(str(error)).strip()}.",
                hint=self._about_space() or self._with_log("Look into its log."),
            ) from error

    def _about_space(self) -> str:
        """Return advice if the disk is full. The server's own words about that are rarely the last of its log."""
        folder = self._places.data_dir
        free = shutil.disk_usage(folder).free
        return f"The disk of {folder} is full: {free >> 20} MiB are free. Make room." if free < _LEAST_FREE else ""

    def _with_log(self, advice: str) -> str:
        """Return the advice, followed by the last lines that the server wrote."""
        logs = [each for each in (self._places.server_log, self._places.start_log) if each and each.exists()]
        parts = [advice]
        for path in logs:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
            parts.append("\n".join([f"The end of {path}:", *(f"  {printable(line)}" for line in lines)]))
        return "\n".join(parts)


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """Return on one line why a program failed, in its own words."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    causes = [line for line in lines if re.search(r"FATAL|PANIC|ERROR|error:", line)]
    return printable(" ".join(causes[:2] or lines[-2:])) or f"exit code {done.returncode}"
