"""Tasks whose result has a form: the sub-agent reports it, or the task has failed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fixtures.engine import Rig, call, do, say

COUNT = {"type": "object", "properties": {"files": {"type": "integer"}}, "required": ["files"]}


def task(schema: Any, **more: Any) -> Any:
    """Return a call of task whose result has this form."""
    return call("task", **{"description": "count", "prompt": "[count] Count.", "schema": schema, **more})


def test_a_report_that_fits_ends_the_task_and_is_its_result(rig: Rig):
    rig.script("root", do(task(COUNT)), say("three"))
    rig.script("count", do(call("report", files=3), call("bash", command="touch made")), say("never said"))
    rig.worker()
    assert rig.run() == "three"
    (result,) = rig.results()
    assert (result["status"], result["result"], result["attempts"]) == ("completed", {"files": 3}, 1)
    assert "note" not in result
    assert len(rig.requests("count")) == 1
    assert not (rig.workdir / "made").exists()
    assert rig.status("count") == "idle"
    offered = {tool["function"]["name"]: tool["function"] for tool in rig.requests("count")[0].body["tools"]}
    assert offered["report"]["parameters"] == COUNT
    assert "report" not in {tool["function"]["name"] for tool in rig.requests()[0].body["tools"]}
    query = "select (status, result ->> 'files', attempts, description, parent_name)::text from agentmesh.v_tasks"
    assert rig.one(query) == "(completed,3,1,count,root)"


def test_a_report_that_does_not_fit_is_refused_with_the_place(rig: Rig):
    rig.script("root", do(task(COUNT)), say("ok"))
    rig.script("count", do(call("report", files="many")), do(call("report", files="3")))
    rig.worker()
    rig.run()
    (result,) = rig.results()
    assert (result["status"], result["result"], result["attempts"]) == ("completed", {"files": 3}, 2)
    missed, _ = rig.results("report", agent="count")
    assert "files: 'many' is not of type 'integer'" in missed["error"]


def test_three_misses_end_the_task(rig: Rig):
    rig.script("root", do(task(COUNT)), say("ok"))
    rig.script("count", do(call("report")), say("There are 3."), do(call("report", files=None)), say("never said"))
    rig.worker()
    rig.run()
    (result,) = rig.results()
    assert (result["status"], result["error"], result["attempts"]) == ("failed", "no valid report", 3)
    assert len(rig.requests("count")) == 3
    assert "Call report now" in rig.requests("count")[2].body["messages"][-1]["content"]


def test_a_sub_agent_that_only_talks_is_told_and_fails_in_the_end(rig: Rig):
    rig.script("root", do(task(COUNT)), say("ok"))
    rig.script("count", say("a"), say("b"), say("c"), say("never said"))
    rig.worker()
    rig.run()
    (result,) = rig.results()
    assert (result["status"], result["error"], result["attempts"]) == ("failed", "no valid report", 3)
    assert result["result"] == "c"


def test_it_goes_on_by_its_id_and_owes_a_report_again(rig: Rig):
    def again(_view: Any) -> Any:
        return do(call("task", description="more", prompt="And now?", agent_id=str(rig.agent("count"))))

    rig.script("root", do(task(COUNT)), again, say("ok"))
    rig.script("count", do(call("report", files=1)), do(call("report", files=2)))
    rig.worker()
    rig.run()
    assert [result["result"] for result in rig.results()] == [{"files": 1}, {"files": 2}]


def test_what_is_no_object_is_reported_as_one(rig: Rig):
    numbers = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
    rig.script("root", do(task(numbers)), say("ok"))
    rig.script("count", do(call("report", result=[1, 2])))
    rig.worker()
    rig.run()
    assert rig.results()[0]["result"] == {"result": [1, 2]}


def test_in_the_background_the_report_comes_as_mail(rig: Rig):
    rig.script("root", do(task(COUNT, background=True)), say("going on"), say("seen"))
    rig.script("count", do(call("report", files=3)))
    rig.worker()
    rig.run()
    rig.rest()
    assert '"files": 3' in rig.one("select body from agentmesh.mail where automatic")


def _nested(depth: int) -> Any:
    return {"type": "array", "items": _nested(depth - 1)} if depth else {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"type": "wizard"}, "invalid schema"),
        ({"type": "object", "description": "x" * 33_000}, "the limit is 32768"),
        ({"type": "object", "description": "x" * 1_000_000}, "cut at the output limit"),
        ({"$ref": "https://example.org/schema"}, "refers to something else"),
        ({"$dynamicRef": "https://example.org/schema"}, "$dynamicRef"),
        ({"type": "string", "pattern": "(?=a)b"}, "pattern that is not understood"),
        ({"patternProperties": {"(a+)+$": {}}}, "patternProperties"),
        (_nested(60), "too large"),
        ({"properties": 3}, "cannot be read"),
    ],
)
def test_what_is_no_schema_is_refused_before_a_sub_agent_is_made(rig: Rig, schema: Any, error: str):
    rig.script("root", do(task(schema)), say("I see"))
    rig.worker()
    assert rig.run() == "I see"
    assert error in rig.results()[0]["error"]
    assert rig.one("select count(*) from agentmesh.agents") == 1


def test_a_pattern_never_runs_away(rig: Rig):
    slow = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    rig.script("root", do(task(slow)), say("ok"))
    rig.script("count", do(call("report", x="a" * 50_000 + "!")), do(call("report", x="aaa")))
    rig.worker()
    rig.run()
    assert (rig.results()[0]["result"], rig.results()[0]["attempts"]) == ({"x": "aaa"}, 2)


def test_only_who_owes_a_report_can_report(rig: Rig):
    rig.script("root", do(call("report", x=1)), say("ok"))
    rig.worker()
    rig.run()
    assert "there is no tool 'report'" in rig.results()[0]["error"]


@pytest.mark.parametrize(
    "failpoint", ["after task 1", "before report 1", "after report 1", "before report 2", "after report 2"]
)
def test_a_crash_around_a_report_loses_and_doubles_nothing(rig: Rig, failpoint: str):
    rig.script("root", do(task(COUNT)), say("three"))
    rig.script("count", do(call("report", files="many")), do(call("report", files=3)), say("never said"))
    rig.crash(failpoint)
    (result,) = rig.results()
    assert (result["status"], result["result"], result["attempts"]) == ("completed", {"files": 3}, 2)
    assert rig.one("select count(*) from agentmesh.tasks") == 1
    assert len(rig.results("report", agent="count")) == 2
