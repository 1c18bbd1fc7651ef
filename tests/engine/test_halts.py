"""Ends that a sub-agent forces on the agents above it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from agentmesh.config.agent_types import AgentType
from tests.fixtures.engine import Rig, call, do, once, say, when

GUARD = AgentType("guard", "Stops work that must not go on.", "You watch.", halt=True)
LEADER = AgentType("leader", "Leads.", "You lead.", tools=("task", "bash"), trusted=True)
KINDS = (GUARD, LEADER)
STOP = call("report", result="the licence forbids it", halt=True)
WORDS = "check halted the work: the licence forbids it"


def guard(prompt: str = "[check] Look.", name: str = "check", kind: str = "guard", **more: Any) -> Any:
    return call("task", description=name, prompt=prompt, subagent_type=kind, **more)


def test_a_report_with_halt_ends_its_parents_turn_in_words(rig: Rig):
    rig.script("root", do(guard()), say("never said"))
    rig.script("check", do(STOP))
    rig.worker(kinds=KINDS)
    rig.prompt()
    rig.rest()
    assert rig.last() == ("", WORDS)
    assert len(rig.requests("root")) == 1
    (result,) = rig.results()
    assert (result["status"], result["result"]) == ("completed", {"result": "the licence forbids it"})
    kind, content = rig.rows()[-1]
    assert (kind, content["kind"]) == ("error", "halted")
    assert rig.results(agent="check") == [{"status": "reported"}]
    assert rig.one("select (ended_as, unseen)::text from agentmesh.agents where parent_id is null") == "(interrupted,t)"
    assert rig.run("and now?") == "never said"


def test_it_reaches_the_root_through_all_between_and_stops_who_works_beside(rig: Rig):
    at_work = threading.Event()
    rig.script("root", do(guard("[mid] Lead.", "mid", "leader"), guard("[other] Work.", "other", "general-purpose")))
    rig.script("mid", do(guard(), call("bash", command="sleep 60")), say("never said"))
    rig.script("other", when(at_work, do(call("bash", command="sleep 60"))))
    rig.script("check", once(lambda: rig.requests("other"), do(STOP)))
    at_work.set()
    rig.worker(kinds=KINDS)
    rig.prompt()
    rig.rest()
    for agent in ("root", "mid", "other"):
        assert rig.last(agent)[1] == WORDS
    assert [result["error"] for result in rig.results("task")] == [WORDS] * 2
    assert rig.status("check") == "idle"


def test_forks_that_work_for_the_root_stop_and_a_persons_fork_goes_on(rig: Rig):
    free = threading.Event()
    rig.script(
        "root",
        do(call("fork", name="check", prompt="Look.", type="guard"), call("fork", name="busy", prompt="Work.")),
        do(call("wait", timeout=30)),
    )
    rig.script("busy", do(call("bash", command="sleep 60")))
    rig.script("mine", when(free, say("done by hand")))
    rig.script("check", once(lambda: rig.waits("root") and rig.requests("busy") and rig.requests("mine"), do(STOP)))
    rig.worker(kinds=KINDS)
    rig.fork("mine", "Do this for me.")
    rig.prompt()
    rig.until(lambda: all(rig.status(agent) == "idle" for agent in ("root", "busy", "check")))
    free.set()
    rig.rest()
    assert rig.last()[1] == rig.last("busy")[1] == WORDS
    assert rig.last("mine") == ("done by hand", None)
    assert "halted" not in str(rig.rows("mine"))
    rig.script("root", *[say("")] * 9)
    rig.run("and now?")
    read = str(rig.requests("root")[-1].body["messages"])
    assert "the licence forbids it" in read
    assert "its turn was ended with the work of others" in read


def test_an_idle_root_is_told_too_and_begins_no_turn(rig: Rig):
    rig.script("root", do(call("fork", name="check", prompt="Look.", type="guard")), say("it looks"))
    rig.script("check", once(lambda: rig.status() == "idle", do(STOP)))
    rig.worker(kinds=KINDS)
    rig.prompt()
    rig.rest()
    assert rig.last()[1] == WORDS
    assert len(rig.requests("root")) == 2
    rig.script("root", *[say("")] * 2, say("I see"))
    assert rig.run("and now?") == "I see"
    assert "the licence forbids it" in str(rig.requests("root")[-1].body["messages"])


def test_it_goes_up_only_to_the_agent_that_works_for_a_person(rig: Rig):
    rig.script("root", say("root is done"))
    rig.script("mine", do(guard()))
    rig.script("check", do(STOP))
    rig.worker(kinds=KINDS)
    rig.run()
    rig.fork("mine", "Do this for me.")
    rig.rest()
    assert rig.last("mine")[1] == WORDS
    assert rig.last() == ("root is done", None)


def test_other_types_are_not_offered_it_and_are_refused(rig: Rig):
    schema = {"type": "object", "properties": {"result": {"type": "string"}}}
    rig.script("root", do(guard(kind="explore", schema=schema)), say("went on"))
    rig.script("check", do(STOP), do(call("report", result="fine", halt=False)))
    rig.worker(kinds=KINDS)
    assert rig.run() == "went on"
    (offered,) = [tool for tool in rig.requests("check")[0].body["tools"] if tool["function"]["name"] == "report"]
    assert "halt" not in offered["function"]["parameters"]["properties"]
    missed, _ = rig.results("report", agent="check")
    assert missed["error"] == "your type may not halt the work of others"


def test_its_own_result_keeps_its_form_and_its_check_does_not_run(rig: Rig):
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    rig.script("root", do(guard(schema=schema, check="touch checked; exit 1")))
    rig.script(
        "check",
        do(call("report", halt=True)),
        do(call("report", n="3", halt="maybe")),
        do(call("report", n=3, halt=True)),
    )
    rig.worker(kinds=KINDS)
    rig.prompt()
    rig.rest()
    (offered,) = [tool for tool in rig.requests("check")[0].body["tools"] if tool["function"]["name"] == "report"]
    assert list(offered["function"]["parameters"]["properties"]) == ["n", "halt"]
    assert rig.last()[1] == 'check halted the work: {"n": 3}'
    assert [result["result"] for result in rig.results()] == [{"n": 3}]
    assert not (rig.workdir / "checked").exists()
    assert ["n" in one["error"] or "halt is" in one["error"] for one in rig.results("report", "check")[:2]] == [
        True
    ] * 2


def test_a_schema_with_a_property_halt_is_refused_for_such_a_type(rig: Rig):
    rig.script("root", do(guard(schema={"type": "object", "properties": {"halt": {}}})), say("I see"))
    rig.worker(kinds=KINDS)
    assert rig.run() == "I see"
    assert "has a property halt" in rig.results()[0]["error"]


def test_without_halt_its_report_is_a_result_and_text_is_not(rig: Rig):
    rig.script("root", do(guard()), say("went on"))
    rig.script("check", say("All is well."), do(call("report", result="fine")))
    rig.worker(kinds=KINDS)
    assert rig.run() == "went on"
    assert rig.results()[0]["result"] == {"result": "fine"}


def test_queued_items_of_a_batch_do_not_begin(rig: Rig):
    rig.script("root", do(guard("[check] {item}", items=["a", "b", "c"], side=1)), say("never said"))
    rig.script("check", do(STOP))
    rig.worker(kinds=KINDS)
    rig.prompt()
    rig.rest()
    assert rig.last()[1] == "check-1 halted the work: the licence forbids it"
    assert [one["status"] for one in rig.results()[0]["results"]] == ["completed", "interrupted", "interrupted"]


def test_a_task_in_the_background_stops_too_and_begins_no_turn(rig: Rig):
    busy = guard("[busy] Work.", "busy", "general-purpose", background=True)
    rig.script("root", do(busy), do(guard()), say("never said"))
    rig.script("busy", do(call("bash", command="sleep 60")))
    rig.script("check", once(lambda: rig.requests("busy"), do(STOP)))
    rig.worker(kinds=KINDS)
    rig.prompt()
    rig.rest()
    assert rig.last()[1] == rig.last("busy")[1] == WORDS
    assert len(rig.requests("root")) == 2
    told = (
        "select (about, read_at is not null, position(%s in body) > 0)::text from agentmesh.mail where about = 'halt'"
    )
    assert rig.one(told, WORDS) == "(halt,t,t)"


def test_a_fork_that_works_for_a_person_halts_nothing(rig: Rig):
    rig.script(
        "root", do(call("fork", name="check", prompt="Look.", type="guard"), call("wait", timeout=30)), say("fine")
    )
    rig.script("check", do(call("report", result="fine")), do(STOP), say("never said"))
    rig.worker(kinds=KINDS)
    assert rig.run() == "fine"
    rig.prompt("and you?", "check")
    rig.rest()
    assert "works for no agent now" in rig.results("report", "check")[-1]["error"]
    assert rig.last() == ("fine", None)


@pytest.mark.parametrize(
    "failpoint", ["before halt 1", "after halt 1", "before stop_turn 1", "after stop_turn 1", "after stop_turn 2"]
)
def test_a_crash_at_any_commit_of_a_halt_repeats_and_loses_nothing(rig: Rig, failpoint: str):
    rig.script("root", do(guard("[mid] Lead.", "mid", "leader")), say("never said"))
    rig.script("mid", do(guard()), say("never said"))
    rig.script("check", do(STOP))
    process = rig.process(failpoint, kinds=KINDS)
    rig.prompt()
    assert process.join() == -9
    rig.bury(process.worker_id)
    rig.worker(kinds=KINDS)
    rig.rest()
    for agent in ("root", "mid"):
        assert rig.last(agent)[1] == WORDS
        assert [content.get("kind") for kind, content in rig.rows(agent) if kind == "error"] == ["halted"]
    assert len(rig.results(agent="check")) == 1
    assert rig.one("select count(*) from agentmesh.tasks where ended_at is null") == 0
