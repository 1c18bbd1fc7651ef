"""A session whose agents go on at servers that want and refuse different parts of earlier answers."""

from __future__ import annotations

import json
from typing import Any

from agentmesh.domain.rows import Row, ToolSettings
from agentmesh.domain.states import Kind
from agentmesh.engine.conversation import Conversation
from agentmesh.llm.simulator.profiles import find_profile
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.store import context
from tests.fixtures.engine import Rig, call, do, say


def calls(rig: Rig, agent: str, kind: str = "assistant") -> list[dict[str, Any]]:
    return [each for row, content in rig.rows(agent) if row == kind for each in content.get("calls", ())]


def test_a_signature_is_stored_with_its_call_and_survives_a_worker(rig: Rig):
    rig.model.profile = find_profile("gemini")
    rig.script(
        "root", do(call("glob", pattern="*"), call("glob", pattern="*.py")), say("one"), do(call("glob", pattern="a"))
    )
    parts = rig.worker()
    assert rig.run() == "one"
    parts.close()
    rig.worker()
    rig.run("again")
    assert ["extra_content" in each for each in calls(rig, "root")] == [True, False, True]
    sent = rig.requests()[-1].body["messages"]
    stored = [each.get("extra_content") for each in calls(rig, "root")]
    assert [each.get("extra_content") for shown in sent for each in shown.get("tool_calls", ())] == stored
    assert rig.model.count == 4, "no request was refused"


def test_details_of_reasoning_are_stored_and_survive_a_worker_and_count_to_the_size(rig: Rig):
    rig.model.profile = find_profile("openrouter")
    looked = do(call("glob", pattern="*"))
    rig.script("root", ScriptedReply("", reasoning="Look.", tool_calls=looked.tool_calls), say("one"), looked)
    parts = rig.worker()
    assert rig.run() == "one"
    parts.close()
    rig.worker()
    rig.run("again")
    answers = [content for kind, content in rig.rows("root") if kind == "assistant"]
    assert [len(content.get("reasoning_details", ())) for content in answers] == [2, 0, 1, 0]
    assert answers[0]["reasoning"] == "Look.", "what people read"
    sent = [shown for shown in rig.requests()[-1].body["messages"] if shown["role"] == "assistant"]
    earlier = [content.get("reasoning_details") for content in answers[:3]]
    assert [shown.get("reasoning_details") for shown in sent] == earlier
    assert rig.model.count == 4, "no request was refused"
    stored = sum(len(json.dumps(content.get("reasoning_details", ""))) for content in answers)
    filling = {part.part: part.bytes for part in rig.db.run(context.filling, rig.root)}
    assert filling["assistant"] > stored
    rows = [Row(rig.root, n, Kind.ASSISTANT, answers[n]) for n in (0, 2)]
    assert sum(Conversation(rig.root, ToolSettings("", []), rows).sizes[1:]) > stored


def test_a_fork_goes_on_at_a_server_of_another_dialect(rig: Rig):
    rig.model.profile = find_profile("deepseek")
    looked = do(call("glob", pattern="*"))
    rig.script("root", ScriptedReply("", reasoning="Look.", tool_calls=looked.tool_calls), say("seen"))
    rig.worker()
    rig.run()
    rig.model.profile = find_profile("mistral")
    rig.script("kid", do(call("glob", pattern="*")), say("done by kid"))
    rig.fork("kid", "look again")
    rig.rest()
    assert rig.last("kid") == ("done by kid", None)
    notes = [note for kind, content in rig.rows("kid") if kind == "assistant" for note in content.get("notes", ())]
    assert notes == [
        "The server refuses messages.reasoning_content; earlier answers were sent in another form.",
        "The server refuses call ids of other servers; earlier answers were sent in another form.",
    ]
