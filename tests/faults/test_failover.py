"""A standby takes over from a primary that was killed, frozen or cut off: nothing acknowledged is lost, all follow."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

import agentmesh
from agentmesh.domain.errors import DatabaseError, ServerReplaced
from agentmesh.store import deadline, listener, mailbox, sessions, tx
from agentmesh.store.link import Pulse
from agentmesh.store.tx import Database
from tests.faults import crowd
from tests.faults.cluster import Cluster, cluster, connector
from tests.faults.conftest import ROUNDS
from tests.faults.crowd import impatient
from tests.faults.pair import Node, Pair, pair, seed
from tests.fixtures.engine import Rig, call, do, say, until, when
from tests.fixtures.invariants import violations
from tests.fixtures.pooler import PROGRAM, Pooler
from tests.fixtures.proxy import Door
from tests.fixtures.worker_process import HOST, USER

pytestmark = [pytest.mark.usefixtures("impatient", "alert"), pytest.mark.timeout(240)]
__all__ = ["cluster", "impatient", "pair", "seed"]

CUT = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name like 'agentmesh/%'"
"""End every connection of the program."""

_PACE = 0.03
"""Seconds between two mails: nobody reads them, and a mailbox holds a thousand."""

Note = Callable[[str, object], None]


@pytest.fixture
def alert(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let listeners of this process notice a silent server sooner; the long form keeps what users have."""
    if not ROUNDS:
        monkeypatch.setattr(listener, "Pulse", lambda: Pulse(every=2.0, within=2.0, asked=0.2))


@contextmanager
def session_on(url: str, workdir: Path) -> Iterator[Rig]:
    """Begin a session; at the end all invariants must hold where the program believes the database to be."""
    rig = Rig(url, psycopg.connect(url, autocommit=True), workdir)
    try:
        yield rig
        with rig.db.connection() as looking:
            assert violations(looking) == []
    finally:
        rig.close()
        rig.conn.close()


@pytest.fixture
def mesh(pair: Pair, tmp_path: Path) -> Iterator[Rig]:
    """A session on the pair."""
    with session_on(pair.url, tmp_path) as rig:
        yield rig


@pytest.fixture
def door(pair: Pair) -> Iterator[Door]:
    """A way to the primary that can be cut off."""
    with closing(Door(pair.a.door)) as made:
        yield made


class Letters:
    """A client that sends one mail after the other to an agent, and keeps what was acknowledged."""

    def __init__(self, rig: Rig) -> None:
        archive = sessions.NewSession(str(rig.workdir), HOST, USER, "sim/m", "", (), external=True)
        self.to = rig.db.run(sessions.start_session, archive)
        self.acknowledged: list[str] = []
        self.in_doubt: list[str] = []
        self._database = Database(rig.url, role="test", pool_size=1, patience=3.0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, name="letters")

    @contextmanager
    def sent(self) -> Iterator[Letters]:
        """Send meanwhile."""
        self._thread.start()
        try:
            yield self
        finally:
            self._over.set()
            self._thread.join()
            self._database.close()

    def until_more(self) -> None:
        """Wait until further ones are acknowledged."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) > before + 5, "acknowledged mail", seconds=60)

    def assert_kept(self, rig: Rig) -> None:
        """Each acknowledged one is there once; one of unknown outcome at most once; no other is."""
        rows = rig.conn.execute("select body from agentmesh.mail where recipient = %s", [self.to]).fetchall()
        there = [body for (body,) in rows]
        assert len(there) == len(set(there))
        assert set(self.acknowledged) <= set(there)
        assert set(there) <= {*self.acknowledged, *self.in_doubt}

    def _send(self) -> None:
        while not self._over.wait(_PACE):
            body = f"letter {uuid.uuid4()}"
            try:
                self._database.run(mailbox.send, None, self.to, body)
            except DatabaseError:
                self.in_doubt.append(body)
            else:
                self.acknowledged.append(body)


def begin(rig: Rig, *, process: bool = bool(ROUNDS)) -> Letters:
    """Let two workers run the mesh, one of them in a process of its own if that is asked for."""
    letters = Letters(rig)
    crowd.script(rig)
    rig.worker(concurrency=6, pool_size=4)
    (rig.process if process else rig.worker)(concurrency=6, pool_size=4)
    rig.prompt()
    return letters


def assert_followed(rig: Rig, pair: Pair, letters: Letters) -> dict[str, int]:
    """All work on the promoted standby comes to its end, as if nothing had been."""
    letters.until_more()
    crowd.until_rest(rig, connector(pair.url_of(pair.b)))
    return crowd.assert_whole(rig)


@pytest.mark.parametrize("seed_of", crowd.SEEDS)
def test_the_primary_is_killed_and_its_standby_promoted(mesh: Rig, pair: Pair, seed_of: str, record_property: Note):
    letters = begin(mesh, process=True)
    with letters.sent():
        for _moment in crowd.at_moments(mesh, random.Random(f"{seed_of} killed"), 1):
            letters.until_more()
            pair.a.kill()
            pair.b.promote()
        told = assert_followed(mesh, pair, letters)
    letters.assert_kept(mesh)
    record_property("fault", ("the primary killed, its standby promoted", 1, told))


@pytest.mark.parametrize("seed_of", crowd.SEEDS)
def test_the_primary_is_frozen_and_thaws_after_the_promotion(
    mesh: Rig, pair: Pair, seed_of: str, record_property: Note
):
    letters = begin(mesh)
    with letters.sent():
        for _moment in crowd.at_moments(mesh, random.Random(f"{seed_of} frozen"), 1):
            letters.until_more()
            pair.a.freeze()
            pair.b.promote()
            letters.until_more()
            pair.a.thaw()
        told = assert_followed(mesh, pair, letters)
    letters.assert_kept(mesh)
    record_property("fault", ("the primary frozen, its standby promoted", 1, told))


@pytest.mark.parametrize("seed_of", crowd.SEEDS)
def test_the_primary_is_cut_off_and_comes_back_as_a_second_one(
    pair: Pair, door: Door, tmp_path: Path, seed_of: str, record_property: Note
):
    """It takes writes all the time, without a standby; whoever is led to it again is not served there."""
    with session_on(pair.url_of(door.address, pair.b), tmp_path) as mesh:
        letters = begin(mesh)
        with letters.sent():
            for _moment in crowd.at_moments(mesh, random.Random(f"{seed_of} cut off"), 1):
                letters.until_more()
                door.fall_silent()
                pair.b.promote()
                letters.until_more()
                pair.a.stand_alone()
                door.speak()
                pair.b.run(CUT)
            told = assert_followed(mesh, pair, letters)
        letters.assert_kept(mesh)
    record_property("fault", ("the primary cut off, its standby promoted, both there", 1, told))


@pytest.mark.parametrize("seed_of", crowd.SEEDS)
def test_commits_wait_for_a_standby_that_is_away(
    mesh: Rig,
    pair: Pair,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    seed_of: str,
    record_property: Note,
):
    """The program says why nothing goes on, and nothing is lost or done twice when the standby is back."""
    monkeypatch.setattr(deadline, "_SLOW_SECONDS", 0.3)
    monkeypatch.setattr(deadline._Told, "at", -deadline._TOLD_EVERY)
    letters = begin(mesh)
    with letters.sent():
        for _moment in crowd.at_moments(mesh, random.Random(f"{seed_of} away"), 1):
            letters.until_more()
            pair.b.kill()
            until(lambda: "hang: a synchronous standby does not confirm them" in caplog.text, "the warning")
            pair.b.start()
        letters.until_more()
        crowd.until_rest(mesh)
    letters.assert_kept(mesh)
    record_property("fault", ("the standby away for a while", 1, crowd.assert_whole(mesh)))


def test_an_old_primary_that_is_all_that_answers_is_refused_until_the_new_one_is_back(
    mesh: Rig, pair: Pair, caplog: pytest.LogCaptureFixture
):
    worker = mesh.worker()
    assert worker.listener
    mesh.script("root", say("one"), say("two"), say("three"))
    assert mesh.run() == "one"
    pair.a.kill()
    pair.b.promote()
    look_at(mesh, pair)
    assert mesh.run("and?") == "two"
    pair.b.kill()
    pair.a.stand_alone()
    pair.a.start()
    with Database(pair.url_of(pair.a), role="test") as stranger:
        stranger.run(mailbox.send, None, mesh.root, "is anybody there?")
    tried = threading.Semaphore(0)
    worker.listener.signals.lost = tried.release
    until(lambda: isinstance(worker.listener and worker.listener.failed, ServerReplaced), "a refusal")
    for _ in range(3):
        assert tried.acquire(timeout=20)
    with (
        pytest.raises(ServerReplaced, match=r"an old primary of timeline 1, .* promoted to timeline 2") as raised,
        closing(Database(mesh.url, role="test", patience=1.0)) as another,
    ):
        another.run(mailbox.send, None, mesh.root, "hello?")
    assert raised.value.hint
    queued = "select status = 'running' and worker_id is null from agentmesh.agents where id = %s"
    with pair.a.open() as looking:
        assert looking.execute(queued, [mesh.root]).fetchone() == (True,), "nobody has claimed it there"
        assert looking.execute("select count(*) from agentmesh.workers").fetchone() == (1,)
    told = [each for each in caplog.messages if each.startswith("connecting again: The server at")]
    assert len(told) == 1, "it says so once"
    assert worker.worker.failed is None
    pair.b.start()
    look_at(mesh, pair)
    assert mesh.run("and now?") == "three"
    assert len(mesh.requests()) == 3


def test_another_database_in_the_place_of_the_known_one_is_refused(pair: Pair, door: Door, cluster: Cluster):
    with Database(pair.url_of(door.address), role="test", patience=1.0) as db:
        assert db.run(first_row) == 1
        with psycopg.connect(cluster.url("postgres")) as other:
            door.lead_to(f"{other.info.host}/.s.PGSQL.{other.info.port}")
        with pytest.raises(ServerReplaced, match=r"its system identifier is \d+, and this program has used \d+"):
            db.run(first_row, idempotent=True)
        door.lead_to(pair.a.door)
        assert db.run(first_row, idempotent=True) == 1


@pytest.mark.skipif(not PROGRAM, reason="no pgbouncer here")
def test_a_pooler_that_goes_back_to_the_old_primary_is_found_out(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    """Its clients keep their connections, so that they have to ask again who answers."""
    monkeypatch.setattr(tx, "_AT_HAND", 0.0)
    switch = pair.a.home.parent / "switch"
    switch.symlink_to(pair.a.socket)
    with psycopg.connect(host=str(switch), dbname="agentmesh", user="agentmesh") as through:
        pooler = Pooler(through.info, switch.parent)
        url = pooler("transaction")
    with closing(pooler), Database(url, role="test", pool_size=1, patience=1.0) as db:
        assert db.run(timeline) == 1
        pair.a.kill()
        pair.b.promote()
        lead(switch, pair.b)
        assert until(lambda: eventually(db)) == 2
        pair.a.stand_alone()
        pair.a.start()
        lead(switch, pair.a)
        pair.b.run(CUT)
        with pytest.raises(ServerReplaced, match="an old primary of timeline 1"):
            until(lambda: eventually(db) == 1, "the old primary")  # must not happen; the pooler notices the cut soon


def lead(switch: Path, node: Node) -> None:
    """Let whoever goes through the link come to this server."""
    switch.unlink()
    switch.symlink_to(node.socket)


def eventually(db: Database) -> object:
    """Return the timeline of the server that answers, None while none does."""
    try:
        return db.run(timeline, idempotent=True)
    except ServerReplaced:
        raise
    except DatabaseError:
        return None


def timeline(connection: psycopg.Connection) -> object:
    row = connection.execute("select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)::int").fetchone()
    return row and row[0]


def look_at(rig: Rig, pair: Pair) -> None:
    """Let the test itself look at the promoted standby from now on."""
    rig.conn.close()
    rig.conn = pair.b.open()


def first_row(connection: psycopg.Connection) -> object:
    row = connection.execute("select 1").fetchone()
    return row and row[0]


def test_a_client_that_waits_follows_the_promotion(
    mesh: Rig, pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A Python program, with its own LISTEN connection and pool; screens and MCP clients use the same."""
    settings = {"DATABASE_URL": mesh.url, "MODEL": "sim/m", "CONFIG_DIR": str(tmp_path), "MODEL_RETRIES": "0"}
    for name, value in settings.items():
        monkeypatch.setenv(f"AGENTMESH_{name}", value)
    monkeypatch.setenv("OPENAI_BASE_URL", mesh.model.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    mesh.worker()
    promoted = threading.Event()
    mesh.script("root", do(call("list_agents")), when(promoted, say("after the promotion")))
    with agentmesh.open(background_workers=False) as program, ThreadPoolExecutor(1) as pool:
        session = mesh.one("select session_id from agentmesh.agents where id = %s", mesh.root)
        waiting = pool.submit(lambda: program.resume_session(session).run("go"))
        mesh.until_asked(times=2)
        pair.a.kill()
        pair.b.promote()
        promoted.set()
        assert waiting.result(timeout=60) == "after the promotion"
    look_at(mesh, pair)
