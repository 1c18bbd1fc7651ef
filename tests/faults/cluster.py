"""A PostgreSQL server of a test's own, to be stopped, crashed, filled up and misconfigured."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import psutil
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from agentmesh.store import schema
from agentmesh.store.embedded import EmbeddedServer
from tests.fixtures import server
from tests.fixtures.engine import Rig
from tests.fixtures.invariants import violations

SETTINGS = {"fsync": "off", "full_page_writes": "off", "max_connections": "60"}
"""The machine does not crash, so what the kernel was told is kept; but no commit may be told before it is made."""

_TEMPLATE = "mesh_template"
_count = itertools.count(1)


class Cluster:
    """The server, and databases on it with the newest schema."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = os.environ.get("AGENTMESH_TEST_PG_BIN")
        self._server = EmbeddedServer(folder, settings=SETTINGS, bin_dir=Path(programs) if programs else None)
        self._server.acquire()
        self.run(sql.SQL("create database {}").format(sql.Identifier(_TEMPLATE)))
        schema.upgrade(self.url(_TEMPLATE))

    def url(self, database: str) -> str:
        """URL of the owner, over the server's socket."""
        parts = {key: value for key, value in conninfo_to_dict(self._server.url()).items() if key != "dbname"}
        return f"postgresql:///{database}?{urlencode(parts)}"

    def run(self, *statements: sql.Composable | str) -> None:
        """Run statements as the owner, outside of all databases of tests."""
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    def database(self, tablespace: str = "pg_default") -> str:
        """Make a database; return its URL."""
        name = f"mesh_{next(_count)}"
        made = sql.SQL("create database {} template {} tablespace {}")
        self.run(made.format(*map(sql.Identifier, (name, _TEMPLATE, tablespace))))
        return self.url(name)

    def stop(self, how: signal.Signals) -> None:
        """Stop it: SIGINT cuts all connections and stops properly, SIGQUIT and SIGKILL are a crash."""
        postmaster = psutil.Process(self._server.status().pid)
        backends = postmaster.children()
        postmaster.send_signal(how)
        psutil.wait_procs([postmaster, *backends], timeout=30)
        assert not postmaster.is_running()

    def start(self) -> None:
        """Start it again; after a crash it recovers first."""
        self._server.acquire()

    def close(self) -> None:
        """Stop it for good."""
        self._server.release()
        self._server.stop(force=True)
        socket_dir = self._server.status().socket_dir
        if self.folder not in socket_dir.parents:
            shutil.rmtree(socket_dir, ignore_errors=True)

    @property
    def owner(self) -> int:
        """Number of the system user who runs it."""
        return int(self.folder.joinpath("postgres", "data").stat().st_uid) if os.geteuid() == 0 else os.geteuid()


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a folder, in memory where there is room, that the server's user can enter."""
    in_memory = os.access(server.MEMORY, os.W_OK) and shutil.disk_usage(server.MEMORY).free >= server.ROOM
    path = Path(tempfile.mkdtemp(prefix="am-", dir=server.MEMORY if in_memory else "/tmp"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def small_disk(megabytes: int, owner: int, where: Path, mode: str = "0700") -> Iterator[Path]:
    """Mount a disk of so many megabytes; skip the test where that is not allowed."""
    where.mkdir()
    options = f"size={megabytes}m,uid={owner},mode={mode}"
    mount = shutil.which("mount")
    if not mount or subprocess.call([mount, "-t", "tmpfs", "-o", options, "none", where], stderr=subprocess.DEVNULL):
        pytest.skip("no file systems can be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server for the tests of one file."""
    with own_folder() as folder:
        made = Cluster(folder / "server")
        try:
            yield made
        finally:
            made.close()


def connector(url: str) -> Callable[[], psycopg.Connection]:
    """Return what makes new autocommit connections there."""
    return lambda: psycopg.connect(url, autocommit=True)


@pytest.fixture
def shaken(cluster: Cluster, tmp_path: Path) -> Iterator[Rig]:
    """A session on that server; at the end all invariants must hold."""
    url = cluster.database()
    connect = connector(url)
    rig = Rig(url, connect(), tmp_path)
    try:
        yield rig
        with connect() as looking:
            assert violations(looking) == []
    finally:
        rig.close()
        rig.conn.close()
