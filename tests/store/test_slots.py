"""Which agents may ask a model server with few slots, in which order."""

from __future__ import annotations

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, person, slots
from tests.fixtures.mesh import MODEL, Mesh

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def team(mesh: Mesh) -> list[AgentId]:
    """Return agents that run."""
    return [mesh.fork(mesh.root, f"agent-{n}", "work") for n in range(5)]


def take(
    mesh: Mesh,
    agent: AgentId,
    key: str = KEY,
    *,
    model: str = MODEL,
    tokens: int = 100,
    free: int = 2,
    patience: float = 60.0,
):
    return mesh.run(slots.take_slot, agent, model, key, tokens, free, patience)


def leave(mesh: Mesh, agent: AgentId) -> None:
    mesh.run(slots.leave_slot, agent)


def backdate(mesh: Mesh, agent: AgentId, seconds: int) -> None:
    mesh.conn.execute(
        "update agentmesh.slots set since = since - make_interval(secs => %s) where agent_id = %s", [seconds, agent]
    )


def test_agents_that_begin_alike_take_turns(mesh: Mesh, team):
    assert take(mesh, team[0]) is None
    left = take(mesh, team[1])
    assert 55 < left <= 60
    leave(mesh, team[0])
    assert take(mesh, team[1]) is None


def test_other_prefixes_go_at_once_while_a_slot_is_free(mesh: Mesh, team):
    assert take(mesh, team[0]) is None
    assert take(mesh, team[1], OTHER) is None
    assert take(mesh, team[2], "c" * 64) is not None
    assert take(mesh, team[3], "c" * 64, free=3) is None


def test_who_was_killed_or_interrupted_meanwhile_gets_no_slot(mesh: Mesh, team):
    assert take(mesh, team[0]) is None
    assert take(mesh, team[1]) is not None
    assert take(mesh, team[2]) is not None
    mesh.run(agents.kill, team[1])
    mesh.run(agents.interrupt, team[2])
    leave(mesh, team[0])
    assert (take(mesh, team[1]), take(mesh, team[2])) == (1.0, 1.0)
    assert take(mesh, team[3]) is None


def test_nobody_waits_longer_than_another_reading_takes(mesh: Mesh, team):
    take(mesh, team[0])
    take(mesh, team[1])
    backdate(mesh, team[1], 61)
    assert take(mesh, team[1]) is None
    take(mesh, team[2], free=3)
    backdate(mesh, team[2], 61)
    left = take(mesh, team[2], free=3)  # two that begin alike ask by now
    assert 50 < left <= 60
    backdate(mesh, team[2], 61)
    assert take(mesh, team[2], free=3) is None


def test_no_more_ask_than_there_are_slots(mesh: Mesh, team):
    take(mesh, team[0])
    take(mesh, team[1], OTHER)
    take(mesh, team[2])
    backdate(mesh, team[2], 1000)
    assert take(mesh, team[2]) is not None


def test_the_deepest_prefix_goes_next(mesh: Mesh, team):
    take(mesh, team[0], free=1)
    take(mesh, team[1], OTHER, tokens=50, free=1)
    take(mesh, team[2], "c" * 64, tokens=500, free=1)
    leave(mesh, team[0])
    assert take(mesh, team[1], OTHER, tokens=50, free=1) is not None
    assert take(mesh, team[2], "c" * 64, tokens=500, free=1) is None
    leave(mesh, team[2])
    assert take(mesh, team[1], OTHER, tokens=50, free=1) is None


def test_a_deeper_one_that_has_to_wait_anyway_holds_up_nobody(mesh: Mesh, team):
    take(mesh, team[0], tokens=500, free=3)
    take(mesh, team[1], tokens=500, free=3)
    assert take(mesh, team[2], OTHER, tokens=50, free=3) is None


@pytest.mark.parametrize("how", ["taken over", "killed", "done"])
def test_who_is_gone_holds_no_slot(mesh: Mesh, team, how):
    take(mesh, team[0])
    assert take(mesh, team[1]) is not None
    change = {
        "taken over": "epoch = epoch + 1",
        "killed": "status = 'dead', died_at = now()",
        "done": "status = 'idle'",
    }
    mesh.conn.execute("set session_replication_role = replica")  # no checks of what such an agent needs besides
    mesh.conn.execute(f"update agentmesh.agents set {change[how]} where id = %s", [team[0]])
    assert take(mesh, team[1]) is None
    assert mesh.conn.execute("select count(*) from agentmesh.slots").fetchone() == (1,)


def test_an_agent_that_asks_again_counts_once(mesh: Mesh, team):
    take(mesh, team[0])
    assert take(mesh, team[0]) is None
    assert take(mesh, team[1], OTHER) is None


def test_a_model_of_another_server_does_not_matter(mesh: Mesh, team):
    mesh.run(person.set_model, team[0], "other/m")  # for its next turn
    assert take(mesh, team[0], free=1) is None
    assert take(mesh, team[1], OTHER, free=1) is not None
    assert take(mesh, team[2], model="other/m", free=1) is None


def test_who_waits_is_told_when_a_slot_is_free(mesh: Mesh, team):
    mesh.conn.execute("listen agentmesh_prefix")
    take(mesh, team[0])
    leave(mesh, team[0])
    take(mesh, team[1])
    take(mesh, team[2])
    leave(mesh, team[1])
    leave(mesh, team[2])
    model = mesh.one("select model from agentmesh.agents where id = %s", team[0])
    told = [each.payload for each in mesh.conn.notifies(timeout=5, stop_after=1)]
    assert told == [model]
    assert list(mesh.conn.notifies(timeout=0)) == []
