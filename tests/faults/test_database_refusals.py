"""The server is there and refuses: no connection free, no writing, no space, no lock, no time."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from agentmesh.domain.errors import DatabaseError
from agentmesh.store import mailbox, pool
from agentmesh.store.tx import Database
from tests.faults import crowd
from tests.faults.cluster import Cluster, cluster, connector, own_folder, shaken, small_disk
from tests.faults.crowd import impatient
from tests.fixtures.engine import Rig, until
from tests.fixtures.invariants import violations
from tests.fixtures.worker_process import Parts

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.timeout(180)]
__all__ = ["cluster", "impatient", "shaken"]

Note = Callable[[str, object], None]
Refused = Callable[[str], None]

OURS = "datname = current_database() and application_name ~ '^agentmesh/(worker|listener)'"


@pytest.fixture
def refused(caplog: pytest.LogCaptureFixture) -> Refused:
    """Wait until a worker has told of a refusal in these words."""

    def wait(words: str) -> None:
        until(lambda: any(words in record.getMessage() for record in list(caplog.records)), f"a word of {words!r}")

    return wait


def begin(rig: Rig, moment_of: str) -> list[Parts]:
    """Let the mesh run until a moment that follows from the seed; return its workers."""
    crowd.script(rig)
    workers = [rig.worker(concurrency=6, pool_size=4) for _ in range(2)]
    rig.prompt()
    for _moment in crowd.at_moments(rig, random.Random(moment_of), 1):
        break
    return workers


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_no_connection_is_free(shaken: Rig, seed: str, record_property: Note):
    workers = begin(shaken, seed)
    taken: list[psycopg.Connection] = []
    over = threading.Event()

    def take() -> None:
        while not over.is_set():
            with suppress(psycopg.OperationalError):
                taken.append(psycopg.connect(shaken.url, autocommit=True))

    def turned_away() -> bool:
        shaken.conn.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {OURS}")
        heard = [each.listener.failed for each in workers if each.listener]
        return all(failed is not None and "too many clients" in failed.message for failed in heard)

    hog = threading.Thread(target=take)
    hog.start()
    try:
        until(lambda: len(taken) > 30, "a full server")
        until(turned_away, "a refusal of both workers")
    finally:
        over.set()
        hog.join()
        for each in taken:
            each.close()
    crowd.until_rest(shaken)
    record_property("fault", ("max_connections exhausted", 1, crowd.assert_whole(shaken)))


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_the_server_takes_no_writes(shaken: Rig, cluster: Cluster, seed: str, refused: Refused, record_property: Note):
    begin(shaken, seed)
    writable = "set default_transaction_read_only = off"
    try:
        cluster.run("alter system set default_transaction_read_only = on", "select pg_reload_conf()")
        refused("read-only transaction")
    finally:
        cluster.run(writable, "alter system reset default_transaction_read_only", "select pg_reload_conf()")
    crowd.until_rest(shaken)
    failed = crowd.assert_settled(shaken, "read-only transaction")
    record_property("fault", ("default_transaction_read_only", 1, {"turns ended with the error": failed}))


def fill(disk: Path) -> Path:
    """Leave no space on a disk; return the file to delete."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_the_disk_is_full(cluster: Cluster, tmp_path: Path, seed: str, refused: Refused, record_property: Note):
    with own_folder() as folder, small_disk(64, cluster.owner, folder / "disk") as disk, space(cluster, disk) as name:
        url = cluster.database(name)
        database = conninfo_to_dict(url)["dbname"]
        connect = connector(url)
        rig = Rig(url, connect(), tmp_path)
        try:
            begin(rig, seed)
            ballast = fill(disk)
            refused("No space left on device")
            ballast.unlink()
            crowd.until_rest(rig)
            failed = crowd.assert_settled(rig, "No space left on device")
            assert violations(rig.conn) == []
        finally:
            rig.close()
            rig.conn.close()
            cluster.run(f'drop database "{database}" with (force)')
    record_property("fault", ("the tables' disk full", 1, {"turns ended with the error": failed}))


@pytest.mark.slow
@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_the_disk_with_the_write_ahead_log_is_full(tmp_path: Path, seed: str, refused: Refused, record_property: Note):
    """PostgreSQL gives up, cannot even recover, and is started again once there is space; workers outlive that."""
    with own_folder() as folder, small_disk(256, os.geteuid(), folder / "disk", "0755") as disk, own(disk) as cluster:
        url = cluster.database()
        connect = connector(url)
        rig = Rig(url, connect(), tmp_path)
        try:
            workers = begin(rig, f"{seed} log")
            with Database(url, role="test", patience=0.5) as verbs:
                ballast = fill(disk)
                use_up_the_log(url)
                refused("cannot be reached")
                with pytest.raises(DatabaseError, match=r"cannot be reached|No space left on device") as raised:
                    verbs.run(mailbox.send, None, rig.root, "is anybody there?")
                assert raised.value.hint
                assert [each.worker.failed for each in workers] == [None, None]
                ballast.unlink()
                cluster.start()
            crowd.until_rest(rig, connect)
            failed = crowd.assert_settled(rig, "No space left on device|cannot be reached")
            assert violations(rig.conn) == []
            assert rig.one("select count(*) from agentmesh.mail where body = 'is anybody there?'") == 0
        finally:
            rig.close()
            rig.conn.close()
    record_property("fault", ("the write-ahead log's disk full", 1, {"turns ended with the error": failed}))


def use_up_the_log(url: str) -> None:
    """Write to the log, and to no table, until the server is gone."""
    with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as stranger:
        while True:
            stranger.execute("select pg_logical_emit_message(true, 'x', repeat('x', 1000000))")


@contextmanager
def own(folder: Path) -> Iterator[Cluster]:
    """Make a server whose whole data is in a folder."""
    made = Cluster(folder / "server")
    try:
        yield made
    finally:
        made.close()


@contextmanager
def space(cluster: Cluster, folder: Path) -> Iterator[str]:
    """Make a tablespace in a folder."""
    cluster.run(f"create tablespace small location '{folder}'")
    yield "small"
    cluster.run("drop tablespace small")


@pytest.mark.parametrize("seed", crowd.SEEDS)
@pytest.mark.parametrize(
    ("limit", "words"), [("lock_timeout", "lock timeout"), ("statement_timeout", "statement timeout")]
)
def test_a_stranger_sits_on_the_tables(
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    words: str,
    seed: str,
    refused: Refused,
    record_property: Note,
):
    for each in ("lock_timeout", "statement_timeout"):
        monkeypatch.setitem(pool._LIMITS, each, "100ms" if each == limit else "0")
    begin(rig, f"{seed} {limit}")
    with psycopg.connect(rig.url) as stranger:
        stranger.execute("lock table agentmesh.agents in access exclusive mode")
        refused(words)
    crowd.until_rest(rig)
    failed = crowd.assert_settled(rig, words)
    record_property("fault", (f"{limit} under a stranger's lock", 1, {"turns ended with the error": failed}))
