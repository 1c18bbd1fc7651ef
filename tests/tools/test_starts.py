"""What a fork would see of the conversation, as estimates of its first call need it."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.engine.tool import ToolContext
from agentmesh.tools import compact, toolset
from agentmesh.tools.starts import starts
from agentmesh.tools.typed import Delegation

NOBODY = UUID(int=0)


@pytest.mark.parametrize(
    ("set_", "given", "inherits"),
    [
        ("full", {}, True),
        ("full", {"context": "none"}, False),
        ("full", {"context": "last 3"}, True),
        ("compact", {}, False),
        ("compact", {"context": "all"}, True),
    ],
)
def test_a_fork_inherits_what_its_set_and_its_call_say(db, tmp_path: Path, set_, given, inherits):
    tools = toolset.builtin(db)
    told = compact.definitions(tools, own_trees=False) if set_ == "compact" else toolset.definitions(tools)
    context = ToolContext(AgentId(NOBODY), SessionId(NOBODY), tmp_path, Cancel(), definitions=told)
    start = starts(Delegation(), "fork", {"name": "kid", "prompt": "look", **given}, context)
    assert start is not None
    assert start.inherits is inherits
