"""Skills and custom commands in a terminal, to the model's request and back."""

from __future__ import annotations

import json

from agentmesh.llm.simulator.request import said
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.terminal import Desk


def test_a_skill_and_a_command_are_typed_like_any_command(desk: Desk, rig: Rig):
    skill = desk.home / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF.\n---\nUse the text layer.\n")
    commands = rig.workdir / ".claude" / "commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("---\ndescription: Greets somebody\nargument-hint: [name]\n---\nGreet $1.\n")
    rig.script("root", do(call("skill", name="pdf")), say("The text layer it is."), say("Hello, Ann."))
    shown = desk.open_new()
    shown.type("/pd")
    shown.until("/pdf", "Reads PDF. (yours, skill)")
    shown.press("tab")
    shown.until("❯ /pdf")
    shown.enter(" a.pdf")
    shown.until("Use the skill pdf", "▸ skill  pdf  ✓", "The text layer it is.")
    first, second = rig.requests()[:2]
    assert "- pdf: Reads PDF." in first.body["messages"][1]["content"]
    assert "skill" in [tool["function"]["name"] for tool in first.body["tools"]]
    assert said(first.body["messages"][-1]) == f"Use the skill pdf ({skill / 'SKILL.md'}).\n\na.pdf"
    assert json.loads(second.body["messages"][-1]["content"])["content"] == "Use the text layer."
    shown.type("/gree")
    shown.until("/greet [name]", "Greets somebody (project)")
    shown.press("tab")
    shown.until("❯ /greet")
    shown.enter("Ann")
    shown.until("Greet Ann.", "Hello, Ann.")
    assert said(rig.requests()[-1].body["messages"][-1]) == "Greet Ann."
