"""A session whose agents go on at servers that want and refuse different parts of earlier answers."""

from __future__ import annotations

from typing import Any

from agentmesh.llm.simulator.profiles import find_profile
from agentmesh.llm.simulator.reply import ScriptedReply
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
