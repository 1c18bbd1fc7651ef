"""A tool call that could not be read, and the tale of a call, are no end of a turn: the model is told, once."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.engine import corrections
from agentmesh.engine.corrections import SHOWN, TOLD
from agentmesh.engine.recording import WORDLESS
from agentmesh.llm.port import Reply
from agentmesh.llm.simulator.reply import ScriptedReply
from tests.fixtures.engine import Rig, call, do, say

BROKEN = say('{"name": "write", "arguments": {"path": "made", "content": "x"')
WRITE = say('{"name": "write", "arguments": {"path": "made", "content": "x"}}')
EXAMPLE = say(
    'Files are written like this:\n```json\n{"name": "write", "arguments": {"path": "a", "content": "b"}}\n```'
)
TALE = say("I have forked three children and waited for them. The sum is 6.")


def told(rig: Rig, agent: str = "root") -> list[str]:
    return [content["correction"] for kind, content in rig.rows(agent) if kind == "user" and "correction" in content]


def error(rig: Rig) -> dict[str, Any]:
    return next(content for kind, content in rig.rows() if kind == "error")


def test_a_broken_call_is_corrected_with_its_schema_and_the_next_one_is_constrained(rig: Rig):
    rig.script("root", BROKEN, WRITE, say("written"))
    rig.worker()
    assert rig.run() == "written"
    assert (rig.workdir / "made").read_text() == "x"
    first, second, third = (request.body for request in rig.requests())
    assert "tool_choice" not in first
    assert "tool_choice" not in third
    assert second["tool_choice"] == "required"
    assert second["messages"][:-2] == first["messages"]
    assert [message["role"] for message in second["messages"][-2:]] == ["assistant", "user"]
    said = second["messages"][-1]["content"]
    schema = next(tool["function"] for tool in second["tools"] if tool["function"]["name"] == "write")["parameters"]
    assert json.dumps(schema, ensure_ascii=False) in said
    assert told(rig) == ["call"]
    assert rig.kinds() == ["user", "assistant", "user", "assistant", "tool_result", "assistant"]


@pytest.mark.parametrize("again", [BROKEN, EXAMPLE], ids=["broken", "an example"])
def test_a_second_unread_call_fails_the_turn_and_people_are_told(rig: Rig, again: ScriptedReply):
    rig.script("root", BROKEN, again, say("never said"))
    rig.worker()
    rig.run()
    failed = error(rig)
    assert (failed["kind"], failed["partial"]) == ("unread", again.text)
    assert rig.last() == ("", "the model wrote a tool call that could not be read, twice in a row")
    assert len(rig.requests()) == 2
    assert rig.one("select count(*) from agentmesh.model_calls where error = 'unread'") == 1
    assert not (rig.workdir / "made").exists()


def test_after_a_call_that_was_made_there_is_another_correction(rig: Rig):
    rig.script("root", BROKEN, WRITE, BROKEN, say("done so"))
    rig.worker()
    assert rig.run() == "done so"
    assert told(rig) == ["call", "call"]


def test_a_new_message_begins_anew(rig: Rig):
    rig.script("root", BROKEN, BROKEN, say("well"))  # the answer that fails a turn is no row of its own
    rig.worker()
    rig.run()
    assert rig.run("once more") == "well"
    assert told(rig) == ["call", "call"]


def test_an_example_is_asked_about_once_and_then_stays(rig: Rig):
    rig.script("root", EXAMPLE, EXAMPLE, say("never said"))
    rig.worker()
    assert rig.run() == EXAMPLE.text
    assert told(rig) == ["perhaps"]
    assert "tool_choice" not in rig.requests()[1].body
    assert [content["text"] for kind, content in rig.rows() if kind == "event"] == [SHOWN]
    assert rig.status() == "idle"


def test_a_tale_of_calls_is_corrected_once(rig: Rig):
    rig.script("root", TALE, TALE, say("never said"))
    rig.worker()
    assert rig.run() == TALE.text
    assert told(rig) == ["told"]
    assert "fork or task was never called" in rig.requests()[1].body["messages"][-1]["content"]
    assert [content["text"] for kind, content in rig.rows() if kind == "event"] == [TOLD]


def test_a_tale_that_becomes_true(rig: Rig):
    rig.script("root", TALE, do(call("fork", name="one", prompt="x")), TALE)
    rig.script("one", say("well"))
    rig.worker()
    rig.run()
    assert told(rig) == ["told"]
    assert rig.one("select count(*) from agentmesh.agents where name = 'one'") == 1


@pytest.mark.parametrize(
    "text",
    [
        "I would fork a child for each file.",
        "You can fork three children.",
        "The code in agents.py forked three children.",
        "I read the file that starts the agents.",
        "I started the server and sent a request to it.",
        "Should I fork three children?",
        "I will fork three children. Shall I begin?",
        "I waited for the child process to end.",
        "I sent a message to the server with curl.",
        "I launched the monitoring agent on the host.",
        "If I forked three children, they would be done at once.",
    ],
)
def test_other_answers_are_no_tale(rig: Rig, text: str):
    rig.script("root", say(text))
    rig.worker()
    assert rig.run() == text
    assert told(rig) == []


def test_a_call_that_the_user_asked_to_see_is_shown_and_not_made(rig: Rig):
    rig.script("root", WRITE, WRITE, say("never said"))
    rig.worker()
    assert rig.run("Show me the tool call that writes a file, in a code block.") == WRITE.text
    assert told(rig) == ["perhaps"]
    assert not (rig.workdir / "made").exists()


def test_two_hundred_calls_are_none(rig: Rig):
    rig.script("root", say("\n".join([WRITE.text] * 200)), WRITE, say("written"))
    rig.worker()
    assert rig.run() == "written"
    assert "more than 128 tool calls" in rig.requests()[1].body["messages"][-1]["content"]


def test_half_a_call_at_the_limit_is_a_cut_answer(rig: Rig):
    rig.script("root", say(BROKEN.text, finish_reason="length"))
    rig.worker()
    assert rig.run() == BROKEN.text
    assert told(rig) == []


def test_whoever_waits_is_told_of_a_child_that_failed_so(rig: Rig):
    rig.script("root", do(call("fork", name="child", prompt="x")), do(call("wait", from_agents=["child"])), say("well"))
    rig.script("child", BROKEN, BROKEN)
    rig.worker()
    assert rig.run() == "well"
    (entry,) = rig.results("wait")[0]["results"]
    assert "could not be read" in json.dumps(entry)


@pytest.mark.parametrize("failpoint", ["before finish_step 1", "after finish_step 1", "before finish_step 2"])
def test_a_crash_around_a_correction_repeats_nothing(rig: Rig, failpoint: str):
    rig.script("root", BROKEN, WRITE, say("written"))
    rig.crash(failpoint)
    assert rig.last() == ("written", None)
    assert told(rig) == ["call"]
    assert len(rig.results("write")) == 1
    assert rig.requests()[-2].body["tool_choice"] == "required"


def test_an_interrupt_ends_it(rig: Rig):
    def stop(_view):
        rig.interrupt("root")
        return BROKEN

    rig.script("root", stop, say("never said"))
    rig.worker()
    rig.run()
    assert rig.kinds()[-1] == "event"
    assert len(rig.requests()) == 1


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("I've now forked 3 children.", "fork or task"),
        ("I have successfully spawned the three sub-agents.", "fork or task"),
        ("I will create three child agents.", "fork or task"),
        ("I'll wait for all of the children.", "wait"),
        ("I’ve waited for both agents.", "wait"),
        ("I sent the report to my parent.", "send"),
        ("I have sent a message with the sum to the root.", "send"),
    ],
)
def test_tales_in_several_words(text: str, tools: str):
    offered: list[dict[str, Any]] = [
        {"function": {"name": name, "parameters": {}}} for name in ("fork", "task", "wait", "send")
    ]
    correction = corrections.judge(Reply(text), [], offered).correction
    assert correction is not None
    assert f"but {tools} was never called" in correction.text
    assert corrections.judge(Reply(text), [], []) == corrections.Verdict()


def result(name: str, **fields: Any) -> Row:
    return Row(AgentId(UUID(int=1)), 3, Kind.TOOL_RESULT, {"call_id": "c", "name": name, "result": fields})


SENT = Row(AgentId(UUID(int=1)), 2, Kind.USER, {"text": "Call wait now.", "correction": "wait"})


@pytest.mark.parametrize(
    ("rows", "offered", "is_sent"),
    [
        ([result("fork", agent_id="1f")], ("fork", "wait"), True),
        ([result("wait", outcome="complete"), result("fork", agent_id="1f")], ("fork", "wait"), True),
        ([result("fork", error="There are too many agents.")], ("fork", "wait"), False),
        ([result("fork", agent_id="1f"), result("wait", outcome="complete")], ("fork", "wait"), False),
        ([result("fork", agent_id="1f")], ("fork",), False),
        ([SENT, result("fork", agent_id="1f")], ("fork", "wait"), False),
        ([], ("fork", "wait"), False),
    ],
    ids=["fork", "one more", "refused", "waited", "cannot wait", "was sent before", "nothing"],
)
def test_only_who_forked_last_and_can_wait_is_sent_to_wait(rows: list[Row], offered: tuple[str, ...], is_sent: bool):
    tools = [{"function": {"name": name, "parameters": {}}} for name in offered]
    correction = corrections.judge(Reply("Three."), rows, tools, is_small=True).correction
    assert (correction is not None) is is_sent
    assert corrections.judge(Reply("Three."), rows, tools) == corrections.Verdict(), "others may leave a child at work"
    cut = Reply("Three.", finish_reason="length")
    assert corrections.judge(cut, rows, tools, is_small=True) == corrections.Verdict()


LOOK = do(call("glob", pattern="*.none"))


def test_an_empty_answer_after_tools_is_asked_for_in_words(rig: Rig):
    """A real 1.5B model found what it was to find, and ended its turn without a word, five times of five."""
    rig.script("root", LOOK, say(""), say("There are none."))
    rig.worker()
    assert rig.run() == "There are none."
    assert told(rig) == ["empty"]
    assert rig.kinds() == ["user", "assistant", "tool_result", "assistant", "user", "assistant"]
    last = rig.requests()[-1].body["messages"]
    assert last[-1]["role"] == "user"
    assert "was empty" in last[-1]["content"]


@pytest.mark.parametrize("again", ["", "(no answer)"], ids=["empty", "what it read for its empty answer"])
def test_a_model_that_stays_silent_ends_its_turn_and_people_are_told(rig: Rig, again: str):
    rig.script("root", LOOK, say(""), say(again), say("never said"))
    rig.worker()
    rig.run()
    assert told(rig) == ["empty"]
    assert len(rig.requests()) == 3
    assert [content["text"] for kind, content in rig.rows() if kind == "event"] == [WORDLESS]


def test_nobody_who_has_sent_a_message_is_asked_for_more_words(rig: Rig):
    rig.script("root", do(call("fork", name="child", prompt="Say a word.")), say("made"), say("heard"))
    rig.script("child", do(call("send", to="parent", message="word")), say(""), say("never said"))
    rig.worker()
    rig.run()
    assert told(rig, "child") == []
    assert len(rig.requests("child")) == 2


def test_a_message_that_was_refused_has_told_nobody(rig: Rig):
    rig.script("root", do(call("send", to="parent", message="There are none.")), say(""), say("There are none."))
    rig.worker()
    assert rig.run() == "There are none."
    assert told(rig) == ["empty"]
