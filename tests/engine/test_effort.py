"""How hard a model is told to think for an agent."""

from __future__ import annotations

import pytest

from agentmesh.config.agent_types import AgentType
from agentmesh.domain.errors import BadArgument
from agentmesh.domain.shape import EFFORTS, Shape
from agentmesh.store import agents, sessions, travel
from tests.fixtures.engine import Rig, call, do, say


def sent(rig: Rig, agent: str) -> list[object]:
    return [request.body.get("reasoning_effort") for request in rig.requests(agent)]


def test_a_fork_thinks_as_hard_as_it_was_told_and_its_own_children_too(rig: Rig):
    rig.script("root", do(call("fork", name="low", prompt="work", effort="low")), say("forked"))
    rig.script(
        "low", do(call("fork", name="below", prompt="work")), do(call("task", prompt="[sub] x", description="x"))
    )
    rig.script("below", say("done"))
    rig.worker()
    rig.run()
    assert set(sent(rig, "root")) == {None}
    assert set(sent(rig, "low")) == {"low"}
    assert sent(rig, "below") == ["low"]
    assert sent(rig, "sub") == ["low"]


def test_a_type_says_how_hard_its_agents_think(rig: Rig):
    lazy = AgentType("lazy", "Does little.", "You do little.", effort="minimal")
    task = call("task", prompt="[sub] x", description="x", subagent_type="lazy")
    fork = call("fork", name="own", prompt="x", type="lazy", effort="high")
    rig.script("root", do(task, call("fork", name="as-typed", prompt="x", type="lazy"), fork), say("done"))
    rig.worker(kinds=[lazy])
    rig.run()
    assert [sent(rig, agent) for agent in ("sub", "as-typed", "own")] == [["minimal"], ["minimal"], ["high"]]


def test_a_session_begins_with_an_effort_and_a_copy_of_it_keeps_that(rig: Rig):
    new = sessions.NewSession(str(rig.workdir), "h", "u", "sim/m", "x", [], effort="low")
    root = rig.db.run(sessions.start_session, new)
    copy = rig.db.run(travel.fork_session, root, 0)
    efforts = rig.conn.execute("select effort from agentmesh.agents where id = any (%s)", [[root, copy.id]]).fetchall()
    assert efforts == [("low",), ("low",)]
    with pytest.raises(BadArgument, match="is no effort of a model"):
        rig.db.run(sessions.start_session, new._replace(effort="much"))


def test_it_stays_with_another_worker(rig: Rig):
    first = rig.worker()
    rig.db.run(agents.fork, rig.root, "high", "go", shape=Shape(effort="high"))
    rig.rest()
    first.close()
    rig.worker()
    rig.prompt("again", "high")
    rig.rest()
    assert sent(rig, "high") == ["high", "high"]


@pytest.mark.parametrize("effort", EFFORTS)
def test_every_level_is_stored(rig: Rig, effort):
    made = rig.db.run(agents.fork, rig.root, "a", shape=Shape(effort=effort))
    assert rig.one("select effort from agentmesh.agents where id = %s", made) == effort


@pytest.mark.parametrize("effort", ["", "High", "max", "low' or 1=1"])
def test_other_words_are_refused_and_nothing_is_made(rig: Rig, effort):
    with pytest.raises(BadArgument, match="is no effort of a model"):
        rig.db.run(agents.fork, rig.root, "a", shape=Shape(effort=effort))
    assert rig.one("select count(*) from agentmesh.agents") == 1
