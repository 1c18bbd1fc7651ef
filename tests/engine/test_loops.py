"""A model that makes the same call again and again is told, and then stopped."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.engine.loops import ENDS, WARNED
from agentmesh.store import person
from tests.fixtures.engine import Rig, call, do, say

GLOB = do(call("glob", pattern="*.none"))
OTHER = do(call("glob", pattern="*.other"))


def notes(rig: Rig) -> list[bool]:
    return ["same arguments and the same result" in result.get("note", "") for result in rig.results()]


def error(rig: Rig) -> dict[str, Any]:
    (row,) = [content for kind, content in rig.rows() if kind == "error"]
    return row


def test_the_third_call_is_told_and_the_fifth_ends_the_turn(rig: Rig):
    rig.script("root", *[GLOB] * 9)
    rig.worker()
    rig.run()
    assert notes(rig) == [False] * (WARNED - 1) + [True] * (ENDS - WARNED + 1)
    assert error(rig)["kind"] == "loop"
    assert 'glob {"pattern": "*.none"}' in error(rig)["error"]
    assert len(rig.requests()) == ENDS


def test_arguments_in_another_order_and_calls_side_by_side_are_the_same(rig: Rig):
    (rig.workdir / "a").write_text("x")
    one, other = call("grep", pattern="y", path="."), call("grep", path=".", pattern="y")
    read = call("read", path="a")
    rig.script("root", *[do(one, read), do(read, other)] * 4)
    rig.worker()
    rig.run()
    assert error(rig)["kind"] == "loop"
    assert len(rig.requests()) == ENDS


@pytest.mark.parametrize(
    "steps",
    [
        [GLOB, GLOB, OTHER] * 4,
        [do(call("bash", command="echo x >> a; cat a"))] * 8,
        [do(call("wait", timeout=0.01))] * 8,
    ],
    ids=["another call between", "another result", "waits"],
)
def test_what_is_no_loop_goes_on(rig: Rig, steps):
    rig.script("root", *steps, say("well"))
    rig.worker()
    assert rig.run() == "well"
    assert not any(notes(rig))


def test_a_word_from_a_person_begins_a_new_count(rig: Rig):
    rig.script("root", *[GLOB] * (ENDS - 1), say("stuck"), *[GLOB] * (ENDS - 1), say("well"))
    rig.worker()
    assert rig.run() == "stuck"
    assert rig.run("go on") == "well"


def test_a_retry_asks_the_model_once_more(rig: Rig):
    rig.script("root", *[GLOB] * ENDS, say("well"))
    rig.worker()
    rig.run()
    assert error(rig)["kind"] == "loop"
    rig.db.run(person.retry, rig.root)
    rig.rest()
    assert rig.last()[0] == "well"


def test_a_loop_is_seen_by_the_worker_that_takes_over(rig: Rig):
    rig.script("root", *[GLOB] * 9)
    dying = rig.process(f"before finish_calls {ENDS}")
    rig.prompt()
    dying.join()
    rig.bury(dying.worker_id)
    rig.worker()
    rig.rest()
    assert error(rig)["kind"] == "loop"
    assert len(rig.requests()) == ENDS
