"""A model that makes the same call again and again is told, and then stopped."""

from __future__ import annotations

import itertools
import json
import uuid
from typing import Any

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import OpenCall, Row
from agentmesh.domain.states import Kind
from agentmesh.engine import loops
from agentmesh.engine.loops import ENDS, PATIENCE, WARNED
from agentmesh.llm.simulator.reply import ScriptedCall
from agentmesh.store import person
from tests.fixtures.engine import Rig, call, do, say

GLOB = do(call("glob", pattern="*.none"))
OTHER = do(call("glob", pattern="*.other"))


def notes(rig: Rig, agent: str = "root") -> list[bool]:
    return ["with the same results" in result.get("note", "") for result in rig.results(agent=agent)]


def error(rig: Rig, agent: str = "root") -> dict[str, Any]:
    (row,) = [content for kind, content in rig.rows(agent) if kind == "error"]
    return row


def test_the_third_step_is_told_and_the_fifth_ends_the_turn(rig: Rig):
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


def write(n: int) -> ScriptedCall:
    return call("write", path=f"file{n}", content="x")


CHECK = call("bash", command="echo all is well")


def test_17_3_other_work_beside_the_same_call_is_no_loop(rig: Rig):
    rig.script("root", *(do(write(n), CHECK) for n in range(2 * ENDS)), say("well"))
    rig.worker()
    assert rig.run() == "well"
    assert not any(notes(rig))


def test_17_3_whole_steps_that_change_nothing_are_a_loop_in_any_order(rig: Rig):
    rig.script("root", *[do(write(1), CHECK, CHECK), do(CHECK, write(1), CHECK)] * ENDS)
    rig.worker()
    rig.run()
    assert error(rig)["kind"] == "loop"
    assert len(rig.requests()) == ENDS + 1, "the first made the file, which the others found"
    assert "write" in error(rig)["error"]
    assert "echo all is well" in error(rig)["error"]


def test_17_3_the_same_look_beside_a_wait_is_patience(rig: Rig):
    rig.script("root", *[do(call("list_agents"), call("wait", timeout=0.01))] * (2 * ENDS), say("well"))
    rig.worker()
    assert rig.run() == "well"
    assert not any(notes(rig))


def test_17_3_looks_at_who_works_are_told_to_wait_and_ended(rig: Rig):
    rig.script("root", *[do(call("list_agents"))] * (2 * ENDS))
    rig.worker()
    rig.run()
    assert error(rig)["kind"] == "loop"
    assert "wait" in rig.results()[WARNED - 1]["note"]


@pytest.mark.parametrize("to", ["parent", ["parent"]], ids=["one", "several"])
def test_the_same_message_again_and_again_is_a_loop(rig: Rig, to: str | list[str]):
    """A real 1.5B model told its parent one word 18 times; each message has its own id, and woke the parent."""
    rig.script("root", do(call("fork", name="child", prompt="Say the word.")), *[say("I see.")] * 9)
    rig.script("child", *[do(call("send", to=to, message="The word is apple."))] * (2 * ENDS))
    rig.worker()
    rig.run()
    assert notes(rig, "child") == [False] * (WARNED - 1) + [True] * (ENDS - WARNED + 1)
    assert 'send {"message": "The word is apple."' in error(rig, "child")["error"]


Made = tuple[str, dict[str, Any], Any]
"""A call: the tool, its arguments, its result."""


def rows_of(*steps: list[Made]) -> list[Row]:
    """Return a conversation of these steps after a prompt."""
    rows: list[tuple[Kind, dict[str, Any]]] = [(Kind.USER, {"text": "go"})]
    for number, step in enumerate(steps):
        named = [(f"{number}.{n}", *made) for n, made in enumerate(step)]
        calls = [{"id": id_, "name": name, "arguments": json.dumps(given)} for id_, name, given, _ in named]
        rows += [(Kind.ASSISTANT, {"text": "", "calls": calls})]
        rows += [(Kind.TOOL_RESULT, {"call_id": id_, "name": name, "result": result}) for id_, name, _, result in named]
    return [Row(AgentId(uuid.UUID(int=1)), n, kind, content) for n, (kind, content) in enumerate(rows, 1)]


def bash(output: str, command: str = "make test") -> list[Made]:
    return [("bash", {"command": command}, {"exit_code": 0, "output": output})]


@pytest.mark.parametrize(
    "outputs",
    [
        [f"1 failed in {n}.3{n}s" for n in range(99)],
        [f"real\t{n}m0.0{n}s\nuser 1h {n}m 3 s" for n in range(99)],
        [f"2026-11-23T22:{n:02}:00.{n}+01:00 refused, 22:{n:02}:00,{n:03} [{1763938067 + n}]" for n in range(60)],
        [f"took {n} ms, {n} seconds; at 9:00:{n:02} PM" for n in range(60)],
    ],
)
def test_17_3_results_that_differ_in_times_and_durations_have_more_patience_but_not_all(outputs: list[str]):
    for count in range(1, ENDS * PATIENCE + 3):
        found = loops.streak(rows_of(*map(bash, outputs[:count])), {})
        assert found.ended == (count >= ENDS * PATIENCE)
        again = OpenCall(1, 0, "x", "bash", '{"command":"make test"}')
        assert (found.note([again]) is not None) == (count >= WARNED * PATIENCE - 1)
    assert "times and durations" in found.error()["error"]
    assert f"after {ENDS * PATIENCE}" in found.error()["error"]


@pytest.mark.parametrize(
    "outputs",
    [
        [f"{n} tests failed" for n in range(99)],
        [f"a.py:{n}:{n}: error" for n in range(99)],
        [f"12:00:00 step {n} of 99" for n in range(99)],
        [f"{n} %" for n in range(99)],
    ],
)
def test_17_3_a_poll_whose_output_changes_is_no_loop(outputs: list[str]):
    found = loops.streak(rows_of(*map(bash, outputs)), {})
    assert (found.same, found.alike) == (1, 1)


def task(number: int, result: str) -> list[Made]:
    done = {
        "status": "completed",
        "result": result,
        "agent_id": f"{number}",
        "name": f"look-{number}",
        "tokens": number,
    }
    return [("task", {"description": "look", "prompt": "Look."}, done)]


def test_the_same_task_with_the_same_answer_is_a_loop_whoever_did_it():
    assert loops.streak(rows_of(*(task(n, "nothing") for n in range(ENDS))), {}).ended
    assert not loops.streak(rows_of(*(task(n, f"{n} files") for n in range(ENDS))), {}).ended


def test_17_3_one_other_call_or_result_in_a_step_begins_a_new_count():
    step = [*bash("ok"), *bash("b", "cat b")]
    assert loops.streak(rows_of(*[step] * 4), {}).same == 4
    assert loops.streak(rows_of(*[step[::-1], step] * 2), {}).same == 4
    for other in (
        [*bash("ok")],
        [*step, *step],
        [*bash("ok"), *bash("c", "cat b")],
        [*bash("ok"), *bash("b", "cat  b")],
    ):
        assert loops.streak(rows_of(*[step] * 4, other), {}).same == 1
        assert loops.streak(rows_of(step, other, step), {}).same == 1
    assert loops.streak(rows_of(*[bash("a"), bash("b")] * 9), {}).alike == 1


def test_17_3_results_alike_before_the_same_ones_are_counted_with_them():
    steps = [bash(f"failed in {n} s") for n in range(ENDS * PATIENCE - 3)] + [bash("failed in 1 s")] * 3
    found = loops.streak(rows_of(*steps), {})
    assert (found.same, found.alike) == (3, ENDS * PATIENCE)
    assert f"after {ENDS * PATIENCE} identical steps" in found.error()["error"]


def test_17_3_only_as_many_steps_are_read_as_may_matter():
    class Rows(list[Row]):
        def __reversed__(self):
            for count, row in enumerate(super().__reversed__()):
                assert count < 2 * (ENDS * PATIENCE + 1)
                yield row

    assert loops.streak(Rows(rows_of(*[bash("ok")] * 1000)), {}).ended
    assert loops.streak(Rows(rows_of(*(bash(f"in {n} s") for n in range(1000)))), {}).ended
    assert not loops.streak(Rows(rows_of(*(bash(f"{n}") for n in range(1000)))), {}).ended


def test_17_3_a_long_output_is_compared_in_linear_time():
    texts = ["1h " * 20_000, "1" * 64_000, "1:" * 32_000, "1.1" * 20_000, "12:12:12 " * 7_000]
    steps = [bash(text + str(n)) for text in texts for n in range(2)]
    for first, second in itertools.pairwise(steps):  # the test's timeout is the assertion
        assert not loops.streak(rows_of(first, second), {}).ended


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


@pytest.mark.slow
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
