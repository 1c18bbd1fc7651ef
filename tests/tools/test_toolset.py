"""The list of tools as a model gets it."""

from __future__ import annotations

from pathlib import Path

import agentmesh.tools
from agentmesh.tools import toolset


def test_the_verbs_and_all_others_are_one_alphabetical_list(db):
    names = list(toolset.builtin(db))
    assert names == sorted(names)
    assert {"fork", "send", "wait", "kill", "task", "list_agents", "ask_user", "todo_write", "bash"} <= {*names}
    described = {path.stem for path in (Path(agentmesh.tools.__file__).parent / "prompts").glob("*.md")}
    assert {*names, "system"} == described
    assert [tool["function"]["name"] for tool in toolset.definitions(toolset.builtin(db))] == [
        name
        for name in names
        if name != "report"  # a task with a schema defines it for its own sub-agent
    ]
