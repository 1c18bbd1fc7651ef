"""Answers that are not what they should be: cut, without a word, calls written as text, calls of no tool."""

from __future__ import annotations

import json

import pytest

from agentmesh.cli.render.figures import cut_off
from agentmesh.engine import recording
from agentmesh.engine.recording import CUT, FULL, STOPPED, WORDLESS
from agentmesh.llm.bounds import MOST_CALLS
from agentmesh.llm.port import Reply, Usage
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedCall, ScriptedReply
from tests.fixtures.engine import Rig, call, do, say

FORK = do(call("fork", name="child", prompt="x"))
WAIT = do(call("wait", timeout=30, from_agents=["child"]))
NOTHING = say("", usage=None)
HALF = say("half of", finish_reason="length")


def events(rig: Rig, agent: str) -> list[str]:
    return [content["text"] for kind, content in rig.rows(agent) if kind == "event"]


@pytest.mark.parametrize(
    ("answer", "output", "event"),
    [(NOTHING, f"[{WORDLESS}]", WORDLESS), (HALF, f"half of\n[{CUT}]", CUT)],
    ids=["wordless", "cut"],
)
def test_whoever_waits_is_told_that_an_answer_is_not_whole(rig: Rig, answer, output, event):
    rig.script("root", FORK, WAIT, say("well"))
    rig.script("child", answer)
    rig.worker()
    assert rig.run() == "well"
    (entry,) = rig.results("wait")[0]["results"]
    assert (entry["status"], entry["output"]) == ("idle", output)
    assert events(rig, "child") == [event]
    assert rig.last("child") == (answer.text, None)


def test_the_automatic_report_tells_it_too(rig: Rig):
    rig.script("root", FORK, say("forked"), say("oh"))
    rig.script("child", NOTHING)
    rig.worker()
    rig.run()
    mail = json.loads(rig.requests()[-1].body["messages"][-1]["content"])["mail"]
    assert mail["output"] == f"[{WORDLESS}]"


def test_a_wait_for_a_child_that_owes_no_report_is_told_as_well(rig: Rig):
    rig.script("child", HALF)
    rig.worker()
    rig.fork("child", "do it")  # by a person: it answers the user
    rig.rest()
    rig.script("root", WAIT, say("well"))
    rig.run()
    (entry,) = rig.results("wait")[0]["results"]
    assert entry["output"] == f"half of\n[{CUT}]"


def test_an_answer_without_a_word_is_asked_for_once_more(rig: Rig):
    answers = iter([NOTHING, say("well")])
    rig.script("root", lambda _view: next(answers))
    rig.worker(retries=3)
    assert rig.run() == "well"
    assert rig.kinds() == ["user", "assistant"]


def test_a_call_that_was_cut_is_told_so_and_does_not_run(rig: Rig):
    cut = ScriptedReply(
        "",
        tool_calls=(ScriptedCall("bash", {"command": "echo a"}), ScriptedCall("write", '{"path": "a", "content": "b')),
        finish_reason="length",
    )
    rig.script("root", cut, say("well"))
    rig.worker()
    assert rig.run() == "well"
    assert "output limit" in rig.results("write")[0]["error"]
    assert "error" not in rig.results("bash")[0]
    assert events(rig, "root") == []


def test_a_call_that_was_cut_is_told_so_after_a_crash(rig: Rig):
    rig.script("root", ScriptedReply("", tool_calls=(ScriptedCall("write", ""),), finish_reason="length"), say("well"))
    dying = rig.process("after finish_step 1")
    rig.prompt()
    dying.join()
    rig.bury(dying.worker_id)
    rig.worker()
    rig.rest()
    assert "output limit" in rig.results("write")[0]["error"]


def test_calls_written_as_text_run_and_the_text_is_kept(rig: Rig):
    written = '```json\n{"name": "bash", "parameters": {"command": "echo hello"}}\n```'
    rig.script("root", say(written), say("well"))
    rig.worker()
    assert rig.run() == "well"
    (result,) = rig.results("bash")
    assert result["output"] == "hello\n"
    row = rig.rows()[1][1]
    assert row["text"] == ""
    assert written in row["notes"][-1]


@pytest.mark.parametrize(("name", "near"), [("Bash", "bash"), ("read_file", "read"), ("list_agent", "list_agents")])
def test_the_refusal_of_an_unknown_tool_names_the_nearest(rig: Rig, name, near):
    rig.script("root", do(call(name)), say("well"))
    rig.worker()
    rig.run()
    (result,) = rig.results()
    assert f"Did you mean {near}" in result["hint"]
    assert "glob" in result["hint"]


def test_the_refusal_of_a_tool_like_none_names_all(rig: Rig):
    rig.script("root", do(call("xyzzy")), say("well"))
    rig.worker()
    rig.run()
    assert rig.results()[0]["hint"].startswith("Your tools are: ")


ENDLESS = "word " * 40_000


def test_an_answer_that_is_too_long_is_kept_to_its_bound_and_said(rig: Rig):
    rig.script("root", say(ENDLESS), say("well"))
    rig.worker()
    kept = rig.run()
    assert kept == ENDLESS[: 4 * 32_768]
    assert events(rig, "root") == [STOPPED]
    rig.prompt("go on")
    rig.rest()
    shown = rig.requests()[-1].body["messages"][-2]
    assert shown == {"role": "assistant", "content": f"{kept}\n[stopped here: the answer was too long]"}


def test_a_call_that_is_too_long_does_not_run_and_its_model_goes_on(rig: Rig):
    rig.script("root", do(call("write", path="x", content=ENDLESS)), say("well"))
    rig.worker()
    assert rig.run() == "well"
    assert "output limit of one answer" in rig.results("write")[0]["error"]


def test_calls_beyond_the_bound_are_told_to_the_model_that_made_them(rig: Rig):
    rig.script("root", do(*[call("read", path=f"{n}") for n in range(MOST_CALLS + 9)]), say("well"))
    rig.worker()
    assert rig.run() == "well"
    results = rig.results("read")
    assert len(results) == MOST_CALLS
    assert [("stopped after this call" in str(result)) for result in results] == [False] * (MOST_CALLS - 1) + [True]


def test_a_message_with_calls_alone_has_empty_content_not_null(rig: Rig):
    rig.script("root", do(call("read", path="x")), say("well"))
    rig.worker()
    rig.run()
    assert [each.get("content") for each in rig.requests()[-1].body["messages"] if each["role"] == "assistant"] == [""]


@pytest.mark.parametrize(
    ("used", "window", "ending"),
    [(2048, 2048, FULL.format(2048)), (2040, 2048, FULL.format(2048)), (500, 2048, CUT), (2048, None, CUT)],
)
def test_an_answer_that_a_full_context_cut_is_not_blamed_on_the_output_limit(used, window, ending):
    reply = Reply("half", usage=Usage(used - 27, 27), finish_reason="length")
    row = recording.content(reply, window=window)
    assert row["ending"] == ending
    assert ("context" in cut_off(row)) == (ending != CUT)


def test_a_fan_out_as_a_small_model_writes_it(rig: Rig):
    forks = "\n".join(
        f'{{{{"name": "fork", "parameters": {{"name": "adder-{n}", "prompt": "Add {n} and 1.", "tools": []}}}}}}'
        for n in (1, 2, 3)
    )
    rig.script(
        "root",
        say(f"I will fork three children now.\n\n{forks}"),
        say('```json\n{"name": "wait", "arguments": {"from_agents": ["adder-1", "adder-2", "adder-3"]}\n```'),
        say("The sums are 2, 3 and 4."),
    )
    for n in (1, 2, 3):
        sent = {"name": "send", "arguments": {"to": "parent", "message": {"sum": n + 1}}}
        rig.script(f"adder-{n}", say(f"<tool_call>\n{json.dumps(sent)}\n</tool_call>"), say("done"))
    rig.worker()
    assert rig.run() == "The sums are 2, 3 and 4."
    (waited,) = rig.results("wait")
    assert waited["outcome"] == "complete"
    assert sorted(entry["message"] for entry in waited["results"]) == ['{"sum": 2}', '{"sum": 3}', '{"sum": 4}']
    assert rig.one("select count(*) from agentmesh.transcript where content ? 'correction'") == 0
    (child,) = (request.body for request in rig.requests("adder-1")[:1])
    assert len(child["tools"]) == len(rig.requests()[0].body["tools"])


def test_a_model_call_records_when_its_first_token_came(rig: Rig):
    cut = ScriptedReply("half of an answer", fault=Fault(FaultKind.CUT, after=3))
    rig.script("root", do(call("list_agents")), say("well", chunk_delay=0.01), cut)
    rig.worker()
    rig.run()
    rig.run()
    recorded = rig.conn.execute("select first_token_ms, latency_ms from agentmesh.model_calls order by id").fetchall()
    assert len(recorded) == 3
    assert all(first is not None and 0 <= first <= whole for first, whole in recorded), recorded
