"""Issue 17, point 16: an outage of the database longer than a lease ends no command that runs."""

from __future__ import annotations

import signal

import psycopg
import pytest

from tests.faults.cluster import Cluster, cluster, shaken
from tests.fixtures.engine import Rig, call, do, say

pytestmark = pytest.mark.timeout(180)
__all__ = ["cluster", "shaken"]


def test_commands_that_run_while_the_server_is_away_end_as_if_it_had_been_there(shaken: Rig, cluster: Cluster):
    """The heartbeats are made older instead of waiting 40 s; that all connections are gone is real."""
    rig = shaken
    for name in ("a", "b"):
        rig.fork(name)
        rig.script(name, do(call("bash", command=f"touch {name}; while ! test -e go; do sleep 0.05; done")), say(name))
    for name in ("a", "b"):
        rig.worker(concurrency=1, tick=0.2)
        rig.prompt("x", name)
    rig.until(lambda: all((rig.workdir / name).exists() for name in ("a", "b")), "both commands")
    owners = "select array_agg(worker_id order by name) from agentmesh.agents where name in ('a', 'b')"
    before = rig.one(owners)
    assert len(set(before)) == 2, "a worker each"
    cluster.stop(signal.SIGINT)
    cluster.start()
    with psycopg.connect(rig.url, autocommit=True) as own:
        own.execute("update agentmesh.workers set seen_at = seen_at - interval '40 s'")
        own.execute("update agentmesh.workers set lost_at = seen_at")
    rig.conn.close()
    rig.conn = psycopg.connect(rig.url, autocommit=True)
    back = "select count(*) = 2 from agentmesh.workers where seen_at > pg_postmaster_start_time() and ended_at is null"
    rig.until(lambda: rig.one(back), "both are back")
    assert rig.one(owners) == before
    (rig.workdir / "go").touch()
    rig.rest()
    assert all("error" not in rig.results("bash", name)[0] for name in ("a", "b"))
    assert [rig.last(name)[0] for name in ("a", "b")] == ["a", "b"]
