"""Many agents inside waits: what their worker keeps of them, and how it takes them over."""

from __future__ import annotations

import threading

import pytest

from agentmesh.engine import crew
from agentmesh.store import waits
from tests.fixtures.engine import Rig, call, do, say

WAITING = 12


def test_who_waits_for_long_keeps_no_conversation_and_goes_on_with_all_of_it(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(crew, "_KEPT", 0.0)
    asked: list[str] = []
    ticked = threading.Semaphore(0)

    def hook(when: str, name: str) -> None:
        if when == "before":
            asked.append(name)
        elif name == "tick":
            ticked.release()

    rig.script("root", do(call("wait", timeout=600)), say("heard"))
    rig.worker(hook=hook, tick=0.1)
    rig.fork("other")
    rig.prompt("remember this")
    rig.until(lambda: rig.waits("root"), "the wait")
    while ticked.acquire(blocking=False):
        pass
    assert all(ticked.acquire(timeout=20) for _ in range(3)), "it was seen at rest, and let go"
    assert asked.count("context") == 1
    rig.send("other", "root", "wake up")
    rig.until(lambda: rig.last()[0] == "heard", "the wake-up")
    assert asked.count("context") == 2, "from its rows"
    first, second = (request.body["messages"] for request in rig.requests())
    assert second[: len(first)] == first
    assert [message["role"] for message in second[len(first) :]] == ["assistant", "tool"]
    assert "wake up" in second[-1]["content"]


def test_a_worker_looks_at_no_wait_that_it_takes_over_but_those_that_are_over(rig: Rig):
    rig.root = rig.session(max_children=WAITING, max_agents=WAITING + 1)
    for n in range(WAITING):
        rig.db.run(waits.wait_begin, rig.fork(f"a{n}"), None, 600.0)
    rig.send("root", "a7", "came before anybody listened")
    asked: list[str] = []
    rig.worker(hook=lambda when, name: asked.append(name) if when == "before" else None, tick=3600.0)
    rig.until(lambda: not rig.waits("a7"), "the wait that could end")
    owned = (
        "select count(*) from agentmesh.agents a join agentmesh.wait w on w.waiter = a.id where worker_id is not null"
    )
    rig.until(lambda: rig.one(owned) == WAITING - 1, "all others")
    assert asked.count("wait_take") == 1
