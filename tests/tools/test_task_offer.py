"""What the tool ``task`` says of the types of sub-agents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from agentmesh.config import skills
from agentmesh.config.agent_types import AgentType
from agentmesh.tools.task import Task
from agentmesh.tools.typed import Delegation


@pytest.fixture
def known(tmp_path):
    folder = tmp_path / ".agentmesh" / "skills" / "how-to-review"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: how-to-review\ndescription: Reviews.\n---\nName the commit.\n")
    return skills.load({"HOME": str(tmp_path)}, tmp_path).skills


def offer(kind, known, workdir):
    delegation = Delegation(types=lambda _workdir: {kind.name: kind}, skills=lambda _workdir: known)
    return Task(cast("Any", None), delegation, workdir).description.splitlines()[-1]


def test_a_guide_is_named_and_not_quoted(known, tmp_path):
    kind = AgentType("reviewer", "Reviews a change.", "You review.", guide="how-to-review")
    said = offer(kind, known, tmp_path)
    assert said == "- reviewer: Reviews a change. Read the skill how-to-review before you use it."


def test_a_guide_that_agents_cannot_read_is_left_out(known, tmp_path):
    kind = AgentType("reviewer", "Reviews a change.", "You review.", guide="gone")
    assert offer(kind, known, tmp_path) == "- reviewer: Reviews a change."
    hidden = {"how-to-review": replace(known["how-to-review"], for_agents=False)}
    assert offer(replace(kind, guide="how-to-review"), hidden, tmp_path) == "- reviewer: Reviews a change."
