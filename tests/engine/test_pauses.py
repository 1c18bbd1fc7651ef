"""A model server that refuses for load is left alone by all workers, and people see why nothing happens."""

from __future__ import annotations

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from tests.fixtures.engine import Rig, say

PATIENT = 7200.0
REFUSED = ScriptedReply("x", fault=Fault(FaultKind.STATUS, status=429, headers={"Retry-After": "3600"}))
ACTIVITY = "paused % s (gives up in % s): rate-limited by sim (model m) (429)"


def is_paused(rig: Rig, agent: str) -> bool:
    query = "select true from agentmesh.v_agents where id = %s and activity like %s"
    return rig.one(query, rig.agent(agent), ACTIVITY) is not None


@pytest.mark.parametrize("hears", [{"tick": 1000.0}, {"tick": 0.05, "deaf": True}], ids=["notify", "tick"])
def test_what_one_worker_was_refused_no_other_asks(rig: Rig, hears):
    rig.script("root", REFUSED)
    workers = [rig.worker(concurrency=1, longest_pause=PATIENT, **hears) for _ in range(2)]
    rig.prompt()
    rig.until(lambda: is_paused(rig, "root"), "the pause of the root")
    rig.until(lambda: all(each.pauses.gate("sim", "m").paused for each in workers), "that both know")
    rig.fork("child", "do it")  # the root's worker has no thread left for it
    rig.until(lambda: is_paused(rig, "child"), "the pause of the child")
    owners = "select count(distinct worker_id) from agentmesh.agents"
    assert rig.one(owners) == 2
    assert len(rig.model.requests) == 1
    for agent in ("root", "child"):
        rig.interrupt(agent)
    rig.rest()
    assert len(rig.model.requests) == 1


@pytest.mark.slow
def test_a_worker_that_starts_in_a_pause_keeps_to_it(rig: Rig):
    rig.script("root", REFUSED)
    first = rig.worker(longest_pause=PATIENT)
    rig.prompt()
    rig.until(lambda: is_paused(rig, "root"), "the pause")
    first.close()
    rig.process(longest_pause=PATIENT)
    rig.fork("child", "do it")
    rig.until(lambda: is_paused(rig, "child"), "the pause of the child")
    assert len(rig.model.requests) == 1


def test_the_turn_goes_on_after_the_pause(rig: Rig):
    tries = iter([Fault(FaultKind.STATUS, status=503), Fault(FaultKind.STATUS, status=529)])
    rig.script("root", lambda _view: ScriptedReply("well", fault=next(tries, None)))
    rig.worker(longest_pause=60.0)
    assert rig.run() == "well"
    assert rig.kinds() == ["user", "assistant"]


def test_a_turn_that_only_pauses_ends_with_the_names_of_provider_and_model(rig: Rig):
    rig.script("root", ScriptedReply("x", fault=Fault(FaultKind.STATUS, status=503)), say("never"))
    rig.worker(longest_pause=0.2)
    rig.run()
    error = rig.last()[1]
    assert error is not None
    assert "sim (model m)" in error
    assert "0.2 s" in error
