"""A run whose work a sub-agent halts."""

from __future__ import annotations

import pytest

from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from tests.fixtures.engine import call, do, say, who

TYPE = "---\ndescription: Watches.\nhalt: true\n---\nYou watch.\n"


def answer(view: ChatRequestView):
    """Let the root give two tasks; one of the sub-agents halts the work, the other one would work for long."""
    match who(view):
        case "check":
            return do(call("report", result="the disk is full", halt=True))
        case "busy":
            return do(call("bash", command="sleep 60"))
    if view.steps_since(-1):
        return say("never said")
    check = call("task", description="check", prompt="[check] Look.", subagent_type="guard")
    return do(call("task", description="busy", prompt="[busy] Work."), check)


@pytest.fixture
def server():
    with Simulator(answer) as made:
        yield made


def test_it_ends_with_the_words_and_an_exit_code(am, server):
    (am.folder / ".agentmesh" / "agents").mkdir(parents=True)
    (am.folder / ".agentmesh" / "agents" / "guard.md").write_text(TYPE)
    mode = ("--permission-mode", "all")
    at = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any"}
    done = am("run", "--model", "gpt-4o", *mode, "--json", "go", **at)
    assert done.code == 1, done.err
    last = done.events[-1]
    assert (last["type"], last["status"]) == ("result", "failed")
    assert last["error"] == "check halted the work: the disk is full"
    assert last["failed"] == {}, "who was stopped by it has not failed"
    done = am("run", "--model", "gpt-4o", *mode, "go", **at)
    assert "check halted the work: the disk is full" in done.err
    assert "Write to it what it should do now." in done.err
