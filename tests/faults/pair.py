"""Two PostgreSQL servers with streaming replication: a primary, and a standby that confirms each commit."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import psutil
import psycopg
import pytest
from psycopg import sql

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

    def promote(self) -> None:
        """Make the standby a primary; return when it takes writes."""
        assert self.run("select pg_promote(true, 60)")

    def kill(self) -> None:
        """Kill every process of it at once, as a power cut does."""
        every = self._processes()
        for each in every:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(every, timeout=30)

    def freeze(self) -> None:
        """Stop every process of it; its kernel still takes connections, and what clients send."""
        for each in self._processes():  # the postmaster first, so that it makes no further one
            each.suspend()

    def thaw(self) -> None:
        """Let all of them go on."""
        for each in reversed(self._processes()):
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

    def url_of(self, *nodes: Node) -> str:
        """URL of these servers, in this order."""
        hosts = ",".join(str(node.socket) for node in nodes)
        parts = {"host": hosts, "port": "5432", "user": "agentmesh", "target_session_attrs": "read-write"}
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
