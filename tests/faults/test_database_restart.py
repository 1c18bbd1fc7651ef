"""The server is stopped and started, and single connections are cut, in the middle of everything."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable

import psycopg
import pytest

from tests.faults import crowd
from tests.faults.cluster import Cluster, cluster, connector, shaken
from tests.faults.conftest import ROUNDS
from tests.faults.crowd import impatient
from tests.fixtures.engine import Rig

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.timeout(180)]
__all__ = ["cluster", "impatient", "shaken"]

Note = Callable[[str, object], None]

STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}
BACKENDS = (
    "select pid from pg_stat_activity where datname = current_database()"
    " and application_name ~ '^agentmesh/(worker|listener)' order by random() limit 1"
)


@pytest.mark.parametrize("seed", crowd.SEEDS)
@pytest.mark.parametrize("how", STOPS if ROUNDS else ["fast", "immediate"])
def test_the_server_is_stopped_and_started_again(
    shaken: Rig, cluster: Cluster, how: str, seed: str, record_property: Note
):
    chosen = random.Random(f"{seed} {how}")
    crowd.script(shaken)
    for _ in range(2):
        shaken.worker(concurrency=6)
    shaken.prompt()
    times = 0
    for _moment in crowd.at_moments(shaken, chosen, 3 if ROUNDS else 1):
        cluster.stop(STOPS[how])
        cluster.start()
        times += 1
    crowd.until_rest(shaken, connector(shaken.url))
    told = crowd.assert_whole(shaken)
    record_property("fault", (f"PostgreSQL stopped ({how}) and started again", times, told))


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_connections_are_cut_one_by_one(rig: Rig, conn: psycopg.Connection, seed: str, record_property: Note):
    chosen = random.Random(seed)
    crowd.script(rig)
    for _ in range(2):
        rig.worker(concurrency=6, pool_size=4)
    rig.prompt()
    times = 0
    for _moment in crowd.at_moments(rig, chosen, 30):
        times += conn.execute(f"select pg_terminate_backend(pid) from ({BACKENDS}) as one").rowcount
    crowd.until_rest(rig)
    record_property("fault", ("one connection terminated", times, crowd.assert_whole(rig)))
