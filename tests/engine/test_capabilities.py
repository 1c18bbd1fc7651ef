"""What one worker finds out of a model server, all others know."""

from __future__ import annotations

import pytest

from agentmesh.domain.rows import Capability
from tests.fixtures.engine import Rig, say


@pytest.mark.parametrize("hears", [{"tick": 1000.0}, {"tick": 0.05, "deaf": True}], ids=["notify", "tick"])
def test_what_one_worker_finds_out_all_others_know(rig: Rig, hears):
    first, second = (rig.worker(**hears) for _ in range(2))
    provider = first.provider
    first.capabilities.learn(provider, "m", slots=2)
    found = Capability(provider.name, provider.address, "m", slots=2)
    rig.until(lambda: second.capabilities.of(provider, "m") == found, "that the other one knows")


def test_a_worker_that_starts_later_knows_too(rig: Rig):
    first = rig.worker()
    first.capabilities.learn(first.provider, "m", context_window=8192)
    first.close()
    later = rig.worker()
    assert later.models.context_window("sim/m") == 8192


def test_without_its_rows_a_worker_goes_on(rig: Rig):
    rig.script("root", say("done"))
    worker = rig.worker(tick=1000.0)
    rig.conn.execute("alter table agentmesh.capabilities rename to gone")
    worker.capabilities.learn(worker.provider, "m", slots=2)
    assert rig.run() == "done"
    rig.conn.execute("alter table agentmesh.gone rename to capabilities")
