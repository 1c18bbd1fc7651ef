"""The way to the server: notifications that never arrive, a listener that is cut off silently, a pooler."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from agentmesh.store import listener
from agentmesh.store.link import Pulse
from tests.faults import crowd
from tests.faults.conftest import ROUNDS
from tests.faults.crowd import impatient
from tests.fixtures.engine import Rig, until
from tests.fixtures.pooler import PROGRAM, Pooler, pooled
from tests.fixtures.proxy import Proxy

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.timeout(180)]
__all__ = ["impatient", "pooled"]

Note = Callable[[str, object], None]

LONG = pytest.mark.skipif(not ROUNDS, reason="in the long form only: FAULTS_ROUNDS")


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_a_listener_is_cut_off_silently(
    rig: Rig, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, seed: str, record_property: Note
):
    """No byte reaches the listeners any more, and nobody closes anything: the ticks carry the mesh meanwhile."""
    monkeypatch.setattr(listener, "Pulse", lambda: Pulse(every=0.2, within=1.0))
    crowd.script(rig)
    workers = [rig.worker(concurrency=6, tick=0.2, listener_url=proxy.url) for _ in range(2)]
    rig.prompt()
    for _moment in crowd.at_moments(rig, random.Random(seed), 1):
        proxy.fall_silent()
        until(lambda: all(each.listener and each.listener.failed for each in workers), "the notice")
        proxy.speak()
    crowd.until_rest(rig)
    record_property("fault", ("listeners cut off silently", 1, crowd.assert_whole(rig)))


@LONG
def test_no_notification_arrives_at_all(rig: Rig, record_property: Note):
    crowd.script(rig)
    for _ in range(2):
        rig.worker(concurrency=6, tick=0.2, deaf=True)
    rig.prompt()
    crowd.until_rest(rig)
    record_property("fault", ("every NOTIFY swallowed", 1, crowd.assert_whole(rig)))


@LONG
@pytest.mark.skipif(not PROGRAM, reason="no pgbouncer here")
def test_a_pooler_in_transaction_mode_with_a_direct_way_for_the_listener(
    pooled: Pooler, rig: Rig, record_property: Note
):
    crowd.script(rig)
    url = pooled("transaction")
    for _ in range(2):
        rig.worker(concurrency=6, url=url, listener_url=rig.url)
    rig.prompt()
    crowd.until_rest(rig)
    record_property("fault", ("PgBouncer in transaction mode in between", 1, crowd.assert_whole(rig)))


@pytest.mark.skipif(not PROGRAM, reason="no pgbouncer here")
@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_the_pooler_is_killed_and_started_again(pooled: Pooler, rig: Rig, seed: str, record_property: Note):
    crowd.script(rig)
    url = pooled("transaction")
    for _ in range(2):
        rig.worker(concurrency=6, url=url, listener_url=rig.url)
    rig.prompt()
    for _moment in crowd.at_moments(rig, random.Random(seed), 2):
        pooled.restart()
    crowd.until_rest(rig)
    record_property("fault", ("PgBouncer killed and started again", 2, crowd.assert_whole(rig)))
