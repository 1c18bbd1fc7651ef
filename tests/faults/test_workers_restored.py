"""Issue 17, point 13: a database that is made anew under living workers gives no two of them one identity."""

from __future__ import annotations

import psycopg

from agentmesh.store import schema
from tests.fixtures.engine import Rig, say
from tests.fixtures.proxy import Proxy


def drop_schema(rig: Rig) -> bool:
    """Drop the schema; return False where a worker's tick held tables in another order, and PostgreSQL chose us."""
    try:
        rig.conn.execute("drop schema agentmesh cascade")
    except psycopg.errors.DeadlockDetected:
        return False
    return True


def test_two_workers_never_share_an_id_when_the_database_is_made_anew_under_them(rig: Rig, proxy: Proxy):
    first = rig.worker(listener_url=proxy.url, tick=0.2)
    second = rig.worker(tick=0.2)
    before = {first.worker.worker_id, second.worker.worker_id}
    proxy.refuse()
    rig.until(lambda: drop_schema(rig), "the schema's end")
    schema.upgrade(rig.url)
    rig.until(lambda: rig.one("select count(*) from agentmesh.workers") == 1, "the second one's new registration")
    proxy.admit()
    rig.until(lambda: rig.one("select count(*) from agentmesh.workers") == 2, "the first one's")
    assert first.worker.worker_id != second.worker.worker_id
    assert not before & {first.worker.worker_id, second.worker.worker_id}
    pids = "select array_agg(backend_pid order by id) from agentmesh.workers where ended_at is null"
    rig.root = rig.session()
    listening = None
    for n in range(4):
        rig.script("root", *(say(f"answer {step}") for step in range(n + 1)))
        assert rig.run() == f"answer {n}"
        listening = listening or rig.one(pids)  # from now on: the first connection after an outage may be lost again
    assert rig.one(pids) == listening, "neither ends the connection of the other"


def test_an_id_says_nothing_of_how_many_workers_there_were(rig: Rig):
    """A number that is counted comes again; one that is drawn does not."""
    ids = {rig.worker().worker.worker_id for _ in range(3)}
    assert len(ids) == 3
    assert max(ids) - min(ids) > 3
    assert all(0 <= worker < 2**31 for worker in ids), "it is the key of an advisory lock too"
