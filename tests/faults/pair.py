"""Two PostgreSQL servers with streaming replication: a primary, and a standby that confirms each commit."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlencode

import psutil
import psycopg
import pytest

from agentmesh.store import schema
from agentmesh.store.embedded import EmbeddedServer
from tests.faults.cluster import SETTINGS, own_folder
from tests.fixtures.engine import until

_DATABASE = "agentmesh"
_CONNECT = f"dbname={_DATABASE} user=agentmesh port=5432 connect_timeout=5"
_names = itertools.count(1)


class Node:
    """One of the two servers. ``home`` is its folder, with the data inside."""

    def __init__(self, name: str, home: Path) -> None:
        programs = os.environ.get("AGENTMESH_TEST_PG_BIN")
        self.name = name
        self.home = home
        self.server = EmbeddedServer(home, settings=SETTINGS, bin_dir=Path(programs) if programs else None)
        self.data = self.server.home / "data"
        self.socket = self.server.status().socket_dir
        self.door = f"{self.socket}/.s.PGSQL.5432"
        """Path of the socket itself, for a proxy."""

    def start(self) -> None:
        """Start it, with whatever its data say that it is."""
        self.server.acquire()

    def open(self) -> psycopg.Connection:
        """Return a new autocommit connection of the owner."""
        return psycopg.connect(f"{_CONNECT} host={self.socket}", autocommit=True)

    def run(self, statement: str) -> object:
        """Run a statement as the owner; return the first column of the first row, if there is one."""
        with self.open() as connection:
            done = connection.execute(statement.encode())
            row = done.fetchone() if done.description else None
            return row and row[0]

    def set(self, **settings: str) -> None:
        """Write settings that hold from the next start on, or from a reload."""
        with (self.data / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def follow(self, primary: Node) -> None:
        """Make it a standby of the primary, from its next start on."""
        (self.data / "standby.signal").touch()
        self.set(primary_conninfo=f"host={primary.socket} port=5432 user=agentmesh application_name={self.name}")
        self.set(wal_retrieve_retry_interval="100ms")

    def stand_alone(self) -> None:
        """Let it commit without a standby, as an administrator in a hurry may."""
        self.set(synchronous_standby_names="")
        if self.server.running():
            self.run("select pg_reload_conf()")

    def promote(self) -> None:
        """Make the standby a primary; return when it takes writes."""
        assert self.run("select pg_promote(true, 60)")

    def kill(self) -> None:
        """Kill every process of it at once, as a power cut does."""
        every = self._processes()
        for each in every:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        until(lambda: all(_is_over(each) for each in every), "their end")

    def freeze(self) -> None:
        """Stop every process of it; its kernel still takes connections, and what clients send."""
        for each in self._processes():  # the postmaster first, so that it makes no further one
            with suppress(psutil.NoSuchProcess):
                each.suspend()

    def thaw(self) -> None:
        """Let all of them go on."""
        for each in reversed(self._processes()):
            with suppress(psutil.NoSuchProcess):  # a connection's process may end meanwhile
                each.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop it for good."""
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            self.kill()
        self.server.release()
        if self.home not in self.socket.parents:
            shutil.rmtree(self.socket, ignore_errors=True)

    def _processes(self) -> list[psutil.Process]:
        pid = self.server.status().pid
        if pid is None:
            return []
        postmaster = psutil.Process(pid)
        return [postmaster, *postmaster.children(recursive=True)]


def _is_over(process: psutil.Process) -> bool:
    """Return whether it has ended, reaped or not: the system may take seconds for that."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Pair:
    """A primary ``a`` and its synchronous standby ``b``, with a database of the newest schema."""

    def __init__(self, seed: Path, folder: Path) -> None:
        """``seed`` is the folder of a server that was stopped: both begin as copies of it."""
        for name in "ab":
            subprocess.run(["cp", "-a", seed, folder / name], check=True)
        self.a, self.b = (Node(name, folder / name) for name in "ab")
        self.a.set(synchronous_standby_names="b")
        self.b.follow(self.a)
        for node in (self.a, self.b):
            node.start()
        until(lambda: self.a.run("select count(*) from pg_stat_replication where sync_state = 'sync'"), "replication")

    @property
    def url(self) -> str:
        """URL of both; the one that takes writes answers."""
        return self.url_of(self.a, self.b)

    @staticmethod
    def url_of(*servers: Node | tuple[str, int]) -> str:
        """URL of these servers, in this order; an address is that of a proxy in front of one."""
        places = [(str(each.socket), 5432) if isinstance(each, Node) else each for each in servers]
        parts = {
            "host": ",".join(host for host, _ in places),
            "port": ",".join(str(port) for _, port in places),
            "user": "agentmesh",
            "target_session_attrs": "read-write",
            "sslmode": "disable",
            "gssencmode": "disable",
        }
        return f"postgresql:///{_DATABASE}?{urlencode(parts)}"

    def close(self) -> None:
        """Stop both for good."""
        for node in (self.a, self.b):
            node.thaw()
            node.close()


@pytest.fixture(scope="module")
def seed() -> Iterator[Path]:
    """Make the data that every pair begins with; they are a stopped server's."""
    with own_folder() as folder:
        node = Node("seed", folder / "seed")
        node.start()
        schema.upgrade(node.server.url())
        node.server.release()
        node.server.stop(force=True)
        yield node.home


@pytest.fixture
def pair(seed: Path) -> Iterator[Pair]:
    """Two servers for one test."""
    with own_folder() as folder, closing(Pair(seed, folder)) as made:
        yield made
