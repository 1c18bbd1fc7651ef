from __future__ import annotations

import gc
import threading

import pytest

from agentmesh.engine.conversation import Conversation
from agentmesh.store import waits
from tests.fixtures.engine import Rig, call, do, say, until

WAITING = 200


@pytest.mark.slow
def test_two_hundred_waiting_agents_hold_no_thread_and_ask_nothing(rig: Rig):
    rig.root = rig.session(max_children=WAITING, max_agents=WAITING + 1)
    for n in range(WAITING):
        child = rig.fork(f"a{n}")
        if n % 2:
            rig.db.run(waits.wait_begin, child, None, 600.0)  # a person's wait
        else:
            rig.script(f"a{n}", do(call("wait", timeout=600)), say("heard"))
    asked: list[str] = []
    ticked = threading.Semaphore(0)

    def hook(when, name):
        if when == "before":
            asked.append(name)
        elif name == "tick":
            ticked.release()

    def between_two_ticks() -> list[str]:
        """Return what is asked from the end of one tick to the end of the next."""
        while ticked.acquire(blocking=False):
            pass
        assert ticked.acquire(timeout=20)
        asked.clear()
        assert ticked.acquire(timeout=20)
        return list(asked)

    before = threading.active_count()
    rig.worker(hook=hook, concurrency=4, tick=0.2)
    for n in range(0, WAITING, 2):
        rig.prompt("x", f"a{n}")
    owned = (
        "select count(*) from agentmesh.agents a join agentmesh.wait w on w.waiter = a.id where a.worker_id is not null"
    )
    rig.until(lambda: rig.one(owned) == WAITING, "all waits")
    rig.until(lambda: between_two_ticks() == ["tick"], "rest")
    assert [between_two_ticks() for _ in range(3)] == [["tick"]] * 3
    threads = [thread.name for thread in threading.enumerate()]
    assert len([name for name in threads if name.startswith("agent-")]) <= 4
    assert threading.active_count() - before < 20
    listening = "select count(*) from pg_stat_activity where datname = current_database() and application_name ~ %s"
    assert rig.one(listening, "^agentmesh/listener") == 1
    rig.send("root", "a0", "wake up")
    rig.until(lambda: rig.last("a0")[0] == "heard", "the wake-up")


def test_an_agent_that_rests_leaves_no_conversation_in_memory(rig: Rig):
    gc.collect()
    gc.disable()  # in an idle worker it has no reason to run
    try:
        rig.worker()
        rig.prompt()
        rig.rest()
        until(lambda: not [one for one in gc.get_objects() if type(one) is Conversation], "an empty memory")
    finally:
        gc.enable()
