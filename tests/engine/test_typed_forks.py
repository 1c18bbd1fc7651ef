"""Forks whose report to their parent has a form: as a task's, but the report is mail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from tests.fixtures.engine import Rig, call, do, say

COUNT = {"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"]}


def fork(schema: Any = COUNT, **more: Any) -> Any:
    """Return a call of fork whose child owes such a report."""
    form = {} if schema is None else {"schema": schema}
    return call("fork", **{"name": "count", "prompt": "Count.", **form, **more})


def mail(rig: Rig) -> list[tuple[str, bool, str | None]]:
    query = "select body, failed, about::text from agentmesh.mail where automatic order by id"
    return [tuple(row) for row in rig.conn.execute(query).fetchall()]


def form(rig: Rig) -> tuple[Any, ...]:
    return tuple(
        rig.conn.execute("select status, result, attempts, check_exit from agentmesh.v_forms").fetchone() or ()
    )


def test_the_parents_mail_holds_the_report(rig: Rig):
    rig.script("root", do(fork()), do(call("wait", timeout=60, from_agents=["count"])), say("three"))
    rig.script("count", do(call("report", files=3), call("bash", command="touch made")), say("never said"))
    rig.worker()
    assert rig.run() == "three"
    (waited,) = rig.results("wait")[0]["results"]
    assert json.loads(waited["output"]) == {"files": 3}
    assert form(rig) == ("reported", {"files": 3}, 1, None)
    assert not (rig.workdir / "made").exists()
    assert rig.status("count") == "idle"
    assert len(rig.requests("count")) == 1
    asked = rig.requests("count")[0].body
    offered = {tool["function"]["name"]: tool["function"] for tool in asked["tools"]}
    assert offered["report"]["parameters"] == COUNT
    assert "then end with a call of report" in asked["messages"][-1]["content"]
    assert "report" not in {tool["function"]["name"] for tool in rig.requests()[0].body["tools"]}
    assert "nothing of the parent's prefix is cached" in rig.results("fork")[0]["cache"]


def test_what_does_not_fit_and_what_is_only_said_are_misses(rig: Rig):
    rig.script("root", do(fork()), say("going on"), say("seen"))
    rig.script("count", do(call("report", files="many")), say("There are 3."), do(call("report", files=3)))
    rig.worker()
    rig.run()
    rig.rest()
    missed, _ = rig.results("report", agent="count")
    assert "files: 'many' is not of type 'integer'" in missed["error"]
    assert "Call report now" in rig.requests("count")[2].body["messages"][-1]["content"]
    assert form(rig) == ("reported", {"files": 3}, 3, None)
    assert mail(rig) == [('{"files": 3}', False, "report")]
    assert "in the form that was asked for" in rig.requests()[-1].body["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (do(call("report")), "the last was refused: the report does not fit: report: 'files' is a required property"),
        (say("c"), "the last answer was text, without a call of report"),
    ],
)
def test_three_misses_end_it_and_are_told(rig: Rig, last: Any, why: str):
    rig.script("root", do(fork()), say("going on"), say("seen"))
    rig.script("count", do(call("report")), say("b"), last, say("never said"))
    rig.worker()
    rig.run()
    rig.rest()
    assert form(rig) == ("failed", None, 3, None)
    assert mail(rig) == [(f"no valid report after 3 attempts; {why}", True, "report")]
    assert len(rig.requests("count")) == 3
    assert rig.status("count") == "idle"


def test_sending_a_message_is_no_report(rig: Rig):
    rig.script("root", do(fork()), say("going on"), say("seen"), say("seen too"))
    rig.script("count", do(call("send", to="parent", message="nearly done")), do(call("report", files=3)))
    rig.worker()
    rig.run()
    rig.rest()
    assert mail(rig) == [('{"files": 3}', False, "report")]


def test_more_work_from_the_parent_owes_a_report_again(rig: Rig):
    wait = do(call("wait", timeout=60, from_agents=["count"]))
    more = do(call("send", to="count", message="And now?"))
    rig.script("root", do(fork()), wait, more, wait, say("ok"))
    rig.script("count", do(call("report", files=1)), say("4"), do(call("report", files=4)))
    rig.worker()
    rig.run()
    assert form(rig) == ("reported", {"files": 4}, 2, None)


def test_a_person_who_asks_later_gets_words(rig: Rig):
    rig.script("root", do(fork()), say("going on"), say("seen"))
    rig.script("count", do(call("report", files=1)), say("I counted them."))
    rig.worker()
    rig.run()
    rig.rest()
    rig.prompt("how?", agent="count")
    rig.rest()
    assert rig.last("count") == ("I counted them.", None)
    assert form(rig) == ("reported", {"files": 1}, 1, None)


def test_a_turn_that_fails_still_owes_it(rig: Rig):
    rig.script("root", do(fork()), say("going on"), say("seen"), say("seen too"))
    refused = [ScriptedReply(fault=Fault(FaultKind.STATUS, status=400))]
    rig.script("count", lambda _view: refused.pop() if refused else do(call("report", files=1)))
    rig.worker()
    rig.run()
    rig.rest()
    assert [failed for _, failed, _ in mail(rig)] == [True]
    assert form(rig)[0] == "owed"
    rig.prompt("go on", agent="count")
    rig.rest()
    assert form(rig) == ("reported", {"files": 1}, 1, None)


def test_a_fork_of_it_owes_no_report(rig: Rig):
    rig.script("root", do(fork()), say("going on"), say("seen"))
    rig.script(
        "count",
        do(call("fork", name="part", prompt="count a part")),
        do(call("wait", timeout=60, from_agents=["part"])),
        do(call("report", files=1)),
    )
    rig.script("part", do(call("report", files=7)), say("seven"))
    rig.worker()
    rig.run()
    rig.rest()
    assert "whose result has a form" in rig.results("report", agent="part")[0]["error"]
    assert form(rig)[:2] == ("reported", {"files": 1})


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "wizard"}, "invalid schema"),
        ({"$ref": "https://example.org/schema"}, "refers to something else"),
        ({"patternProperties": {"(a+)+$": {}}}, "patternProperties"),
    ],
)
def test_what_is_no_schema_is_refused_before_a_child_is_made(rig: Rig, schema: Any, error: str):
    rig.script("root", do(fork(schema)), say("I see"))
    rig.worker()
    assert rig.run() == "I see"
    assert error in rig.results()[0]["error"]
    assert rig.one("select count(*) from agentmesh.agents") == 1


def test_a_report_that_is_too_long_as_mail_is_a_miss(rig: Rig):
    loose = {"type": "object"}
    rig.script("root", do(fork(loose)), say("going on"), say("seen"))
    rig.script("count", do(call("report", n=[1e300] * 1000)), do(call("report", n=1)))
    rig.worker()
    rig.run()
    rig.rest()
    assert "too long for a message" in rig.results("report", agent="count")[0]["error"]
    assert mail(rig) == [('{"n": 1}', False, "report")]


@pytest.mark.parametrize(
    "failpoint", ["before report 1", "after report 1", "before report 2", "after report 2", "after fork 1"]
)
def test_a_crash_around_a_report_loses_and_doubles_nothing(rig: Rig, failpoint: str):
    rig.script("root", do(fork()), do(call("wait", timeout=60, from_agents=["count"])), say("three"))
    rig.script("count", do(call("report", files="many")), do(call("report", files=3)), say("never said"))
    rig.crash(failpoint)
    assert form(rig) == ("reported", {"files": 3}, 2, None)
    assert mail(rig) == [('{"files": 3}', False, "report")]
    assert len(rig.results("report", agent="count")) == 2
