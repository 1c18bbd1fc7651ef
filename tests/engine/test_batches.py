"""A call of task with items, run by real workers: nothing is lost or doubled, whatever dies."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.fixtures.engine import PATIENCE, Rig, call, do, say, until, when


def task(count: int, **more: Any) -> Any:
    """Return a call of task with the items a1, a2, ...; each sub-agent is scripted by its item."""
    items = [f"a{n}" for n in range(1, count + 1)]
    return call("task", **{"description": "count", "prompt": "[{item}] Count.", "items": items, **more})


def texts(rig: Rig) -> list[str]:
    """Return the results of the only batch."""
    (result,) = rig.results("task")
    assert (result["done"], result["failed"]) == (len(result["results"]), 0)
    return [str(entry["result"]) for entry in result["results"]]


def script(rig: Rig, count: int, **more: Any) -> None:
    rig.script("root", do(task(count, **more)), say("ok"))
    for n in range(1, count + 1):
        rig.script(f"a{n}", say(f"from a{n}"))


def ran_once(rig: Rig, count: int) -> None:
    """Check that each item had one task, which ended once, and that no model call of an item was kept twice."""
    assert texts(rig) == [f"from a{n}" for n in range(1, count + 1)]
    assert rig.one("select count(*) from agentmesh.tasks where status = 'completed'") == count
    assert rig.one("select count(*) from agentmesh.agents where clean and model_calls = 1") == count


def test_more_items_than_children_are_allowed_are_all_done_in_order(rig: Rig):
    script(rig, 40)
    rig.worker(concurrency=4)
    assert rig.run() == "ok"
    ran_once(rig, 40)
    assert rig.one("select side from agentmesh.v_batches") == 16


def test_one_thread_is_enough_and_side_by_side_is_what_was_asked(rig: Rig):
    both, most = threading.Barrier(2), []

    def meet(_view: Any) -> Any:
        most.append(rig.one("select count(*) from agentmesh.tasks where ended_at is null"))
        both.wait(PATIENCE)
        return say("met")

    rig.script("root", do(task(6, side=2)), say("ok"))
    for n in range(1, 7):
        rig.script(f"a{n}", meet)
    rig.worker(concurrency=2)
    rig.run()
    assert texts(rig) == ["met"] * 6
    assert max(most) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "failpoint",
    [
        "before batch 1",
        "after batch 1",
        "before finish_step 2",
        "after finish_step 2",
        "before begin_step 9",
        "before finish_step 30",
        "after finish_step 30",
        "before finish_step 51",
        "after finish_step 51",
    ],
)
def test_a_crash_at_any_commit_of_a_batch_loses_and_doubles_nothing(rig: Rig, failpoint: str):
    script(rig, 50, side=4)
    rig.crash(failpoint)
    ran_once(rig, 50)


@pytest.mark.slow
def test_workers_that_die_at_every_end_of_an_item_get_it_done(rig: Rig):
    script(rig, 6, side=2)
    rig.prompt()
    for failpoint in ("after batch 1", *["after finish_step 1", "before finish_step 2"] * 2):
        process = rig.process(failpoint)
        assert process.join() == -9
        rig.bury(process.worker_id)
    rig.worker()
    rig.rest()
    ran_once(rig, 6)


def test_an_interrupt_of_the_parent_stops_its_items(rig: Rig):
    go = threading.Event()
    rig.script("root", do(task(4, side=2)), say("ok"))
    rig.script("a1", when(go, say("one")))
    rig.script("a2", when(go, say("two")))
    rig.worker()
    rig.prompt()
    until(lambda: len(rig.requests("a1")) + len(rig.requests("a2")) == 2)
    rig.interrupt("root")
    rig.rest()
    go.set()
    assert rig.one("select string_agg(state, ' ' order by place) from agentmesh.v_batch_items") == " ".join(
        ["failed"] * 4
    )
    assert rig.one("select count(*) from agentmesh.agents where clean") == 2
    assert rig.one("select count(*) from agentmesh.agents where status = 'running'") == 0


def test_items_with_a_schema_give_json(rig: Rig):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    rig.script("root", do(task(3, schema=schema, side=1)), say("ok"))
    rig.script("a1", do(call("report", n=1)))
    rig.script("a2", do(call("report", n="many")), do(call("report", n=2)))
    rig.script("a3", say("a"), say("b"), say("c"))
    rig.worker()
    rig.run()
    (result,) = rig.results("task")
    assert [(entry["status"], entry["result"]) for entry in result["results"]] == [
        ("completed", {"n": 1}),
        ("completed", {"n": 2}),
        ("failed", "c"),
    ]


def test_people_see_how_far_it_is(rig: Rig):
    go = threading.Event()
    script(rig, 3, side=1)
    rig.script("a2", when(go, say("two")))
    rig.worker()
    rig.prompt()
    rig.until_asked("a2")
    activity = "select activity from agentmesh.v_agents where name = 'root'"
    until(lambda: rig.one(activity) == "task: 1 of 3 done")
    go.set()
    rig.rest()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"prompt": "Count {items}."}, "{item} is not in it"),
        ({"items": ["x", ""]}, "these items are empty: 2"),
        ({"items": []}, "items"),
        ({"items": ["x"] * 1001}, "items"),
        ({"background": True}, "items and background do not go together"),
        ({"agent_id": "a1"}, "items and agent_id do not go together"),
        ({"items": None, "side": 2}, "there are no items"),
        ({"side": 0}, "side"),
        ({"side": 2**31}, "side"),
        ({"subagent_type": "wizard"}, "there is no type of sub-agent"),
    ],
)
def test_a_batch_that_cannot_begin_says_why(rig: Rig, arguments: dict[str, Any], error: str):
    rig.script("root", do(task(2, **arguments)), say("I see"))
    rig.worker()
    assert rig.run() == "I see"
    assert error in rig.results()[0]["error"]
    assert rig.one("select count(*) from agentmesh.batches") == 0
