"""A standby takes over from a primary that was killed, frozen or cut off: nothing acknowledged is lost, all follow."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseError
from agentmesh.store import mailbox, sessions
from agentmesh.store.tx import Database
from tests.faults import crowd
from tests.faults.cluster import connector
from tests.faults.conftest import ROUNDS
from tests.faults.crowd import impatient
from tests.faults.pair import Pair, pair, seed
from tests.fixtures.engine import Rig, until
from tests.fixtures.invariants import violations
from tests.fixtures.worker_process import HOST, USER

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.timeout(240)]
__all__ = ["impatient", "pair", "seed"]

_PACE = 0.03
"""Seconds between two mails: nobody reads them, and a mailbox holds a thousand."""

Note = Callable[[str, object], None]


@pytest.fixture
def mesh(pair: Pair, tmp_path: Path) -> Iterator[Rig]:
    """A session on the pair; at the end all invariants must hold where the program believes the database to be."""
    rig = Rig(pair.url, psycopg.connect(pair.url, autocommit=True), tmp_path)
    try:
        yield rig
        with rig.db.connection() as looking:
            assert violations(looking) == []
    finally:
        rig.close()
        rig.conn.close()


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


def begin(rig: Rig, moment_of: str) -> Letters:
    """Let the mesh run until a moment that follows from the seed, and mail be sent."""
    letters = Letters(rig)
    crowd.script(rig)
    for _ in range(2):
        rig.worker(concurrency=6, pool_size=4)
    rig.prompt()
    return letters


@pytest.mark.parametrize("seed_of", crowd.SEEDS)
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_the_standby_is_promoted(mesh: Rig, pair: Pair, how: str, seed_of: str, record_property: Note):
    letters = begin(mesh, seed_of)
    with letters.sent():
        for _moment in crowd.at_moments(mesh, random.Random(f"{seed_of} {how}"), 1):
            letters.until_more()
            if how == "killed":
                pair.a.kill()
            else:
                pair.a.freeze()
            pair.b.promote()
        letters.until_more()
        crowd.until_rest(mesh, connector(pair.url_of(pair.b)))
    letters.assert_kept(mesh)
    record_property("fault", (f"the primary {how}, its standby promoted", 1, crowd.assert_whole(mesh)))
