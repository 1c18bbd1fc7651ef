"""What a failing model server means to the agent, to whoever waits for it, and to the user."""

from __future__ import annotations

import json

import pytest

from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import said
from tests.fixtures.engine import Rig, call, do, say

QUICK = {"connect_timeout": 2.0, "first_token_timeout": 0.4, "idle_timeout": 0.4}
TEXT = "A longer answer, so that there is something to cut. " * 3
CONTEXT = {
    "error": {
        "message": "This model's maximum context length is 8192 tokens. However, you sent 9000 tokens.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}

FAILURES = {
    "an empty answer": (Fault(FaultKind.EMPTY), "empty"),
    "a cut stream": (Fault(FaultKind.CUT, after=3), "cut"),
    "a closed connection": (Fault(FaultKind.DISCONNECT), "connection"),
    "429": (Fault(FaultKind.STATUS, status=429), "rate_limit"),
    "500": (Fault(FaultKind.STATUS, status=500), "server"),
    "no headers": (Fault(FaultKind.HANG_HEADERS), "timeout"),
    "a hanging stream": (Fault(FaultKind.HANG_STREAM, after=3), "timeout"),
    "a wrong key": (Fault(FaultKind.STATUS, status=401), "auth"),
    "an unknown model": (Fault(FaultKind.STATUS, status=404, message="The model m does not exist"), "unknown_model"),
    "a full context": (Fault(FaultKind.STATUS, status=400, body=CONTEXT), "context"),
    "garbage": (Fault(FaultKind.GARBAGE, after=2), "garbage"),
}


@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_ends_the_turn_and_everybody_is_told_the_same(rig: Rig, failure):
    fault, kind = FAILURES[failure]
    rig.script("root", do(call("fork", name="child", prompt="x")), do(call("wait", timeout=30, from_agents=["child"])))
    rig.script("child", ScriptedReply(TEXT, fault=fault), say("better now"))
    rig.worker(timeouts=QUICK)
    rig.run()
    assert rig.status("child") == "idle"
    row = next(content for what, content in rig.rows("child") if what == "error")
    assert row["kind"] == kind
    assert row["error"]
    assert row["hint"]
    assert "Traceback" not in json.dumps(row)
    (entry,) = rig.results("wait")[0]["results"]
    assert entry["status"] == "idle"
    assert entry["error"] == row["error"]
    assert rig.last("child") == ("", row["error"])
    booked = "select error from agentmesh.model_calls where agent_id = %s"
    assert rig.one(booked, rig.agent("child")) == kind
    rig.prompt("try again", "child")
    rig.rest()
    assert [message["role"] for message in rig.requests("child")[-1].body["messages"]][-2:] == ["user", "user"]


def test_what_had_come_of_a_cut_answer_is_kept_for_people_and_not_shown_to_the_model(rig: Rig):
    rig.script("root", ScriptedReply(TEXT, fault=Fault(FaultKind.CUT, after=3)), say("again"))
    rig.worker()
    rig.prompt()
    rig.rest()
    (row,) = [content for what, content in rig.rows() if what == "error"]
    assert row["partial"]
    assert TEXT.startswith(row["partial"])
    assert rig.one("select output_tokens from agentmesh.agents where id = %s", rig.root) > 0
    assert rig.one("select finish_reason is null from agentmesh.model_calls where error is not null")
    rig.run("try again")
    shown = rig.requests()[1].body["messages"][1:]
    assert [said(message) for message in shown] == ["go", "try again"]


def test_a_failure_that_passes_is_tried_again_and_leaves_no_trace(rig: Rig):
    tries = iter([Fault(FaultKind.STATUS, status=500), Fault(FaultKind.STATUS, status=429)])
    rig.script("root", lambda _view: ScriptedReply("well", fault=next(tries, None)))
    rig.worker(retries=3, longest_pause=60)
    assert rig.run() == "well"
    assert len(rig.requests()) == 3
    assert rig.kinds() == ["user", "assistant"]


def test_a_provider_that_nobody_serves_leaves_the_agent_queued(rig: Rig):
    rig.conn.execute("update agentmesh.agents set model = 'elsewhere/m' where id = %s", [rig.root])
    rig.prompt()
    first = rig.worker(tick=0.1)
    rig.until(lambda: rig.one("select seen_at > started_at from agentmesh.workers"), "a tick")
    assert rig.status() == "running"
    assert rig.one("select worker_id from agentmesh.agents where id = %s", rig.root) is None
    first.worker.stop()
    rig.worker(providers=("elsewhere",))
    rig.rest()
    assert rig.last()[0] == "done"


def test_a_failing_child_reports_its_error_to_an_idle_parent(rig: Rig):
    rig.script("root", do(call("fork", name="child", prompt="x")), say("forked"), say("oh"))
    rig.script("child", ScriptedReply("x", fault=Fault(FaultKind.STATUS, status=401)))
    rig.worker()
    rig.run()
    assert rig.last()[0] == "oh"
    mail = json.loads(rig.requests()[-1].body["messages"][-1]["content"])["mail"]
    assert mail["error"] == rig.last("child")[1]
