"""Who may ask a model first whose server is to read a prefix that several agents share."""

from __future__ import annotations

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import prefixes
from tests.fixtures.mesh import MODEL, Mesh

KEY, OTHER = "a" * 64, "b" * 64


def hold(mesh: Mesh, agent: AgentId, key: str = KEY, *, seconds: float = 60.0, after: int = 0) -> float | None:
    return mesh.run(prefixes.hold_prefix, key, agent, MODEL, after, seconds, 300.0)


def test_one_goes_first_and_the_others_wait_until_it_is_warm(mesh: Mesh):
    one, two = mesh.fork(mesh.root, "one"), mesh.fork(mesh.root, "two")
    assert hold(mesh, one) == 0
    left = hold(mesh, two)
    assert left is not None
    assert 0 < left <= 60
    assert hold(mesh, two, OTHER) == 0
    mesh.run(prefixes.warm_prefix, KEY, one, is_warm=True)
    assert hold(mesh, two) is None
    assert hold(mesh, one) is None


def test_only_who_went_first_makes_it_warm(mesh: Mesh):
    one, two = mesh.fork(mesh.root, "one"), mesh.fork(mesh.root, "two")
    hold(mesh, one)
    mesh.run(prefixes.warm_prefix, KEY, two, is_warm=True)
    assert hold(mesh, two)


def test_after_a_failed_call_the_next_one_goes_first(mesh: Mesh):
    one, two, three = (mesh.fork(mesh.root, name) for name in ("one", "two", "three"))
    hold(mesh, one)
    mesh.run(prefixes.warm_prefix, KEY, one, is_warm=False)
    assert hold(mesh, two) == 0
    assert hold(mesh, three)


def test_nobody_waits_longer_than_was_said(mesh: Mesh):
    one, two = mesh.fork(mesh.root, "one"), mesh.fork(mesh.root, "two")
    hold(mesh, one, seconds=0)
    assert hold(mesh, two) == 0


def test_what_was_warm_long_ago_is_cold(mesh: Mesh):
    one, two = mesh.fork(mesh.root, "one"), mesh.fork(mesh.root, "two")
    hold(mesh, one)
    mesh.run(prefixes.warm_prefix, KEY, one, is_warm=True)
    mesh.conn.execute("update agentmesh.prefixes set warm_at = warm_at - interval '6 minutes'")
    assert hold(mesh, two) == 0


def test_what_the_parent_has_read_is_warm(mesh: Mesh):
    mesh.call(mesh.root, "bash")
    child = mesh.fork(mesh.root, "child")
    assert hold(mesh, child) is None
    assert hold(mesh, child, after=1_000) == 0  # only what it has read since counts


@pytest.mark.parametrize("column", ["model", "settings_id"])
def test_a_parent_with_another_model_has_not_read_it(mesh: Mesh, column):
    mesh.call(mesh.root, "bash")
    child = mesh.fork(mesh.root, "child")
    if column == "settings_id":
        mesh.conn.execute(
            "insert into agentmesh.settings (id, system_prompt, tools)"
            " select %s, system_prompt || '!', tools from agentmesh.settings limit 1",
            [OTHER],
        )
    mesh.conn.execute(f"update agentmesh.agents set {column} = %s where id = %s", [OTHER, mesh.root])
    assert hold(mesh, child) == 0


def test_old_ones_go_with_the_next_new_one(mesh: Mesh):
    one = mesh.fork(mesh.root, "one")
    hold(mesh, one)
    mesh.run(prefixes.warm_prefix, KEY, one, is_warm=True)
    mesh.conn.execute(
        "update agentmesh.prefixes set warm_at = warm_at - interval '2 hours',"
        " held_until = held_until - interval '2 hours'"
    )
    hold(mesh, one, OTHER)
    assert [row[0] for row in mesh.conn.execute("select key from agentmesh.prefixes")] == [OTHER]
