"""Leases and conflicts: who else writes here, and who changed the same file elsewhere."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import BadArgument, Fenced
from agentmesh.domain.ids import AgentId
from agentmesh.domain.workspaces import FileLease
from agentmesh.store import conflicts, leases, sessions, steps
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh
from tests.fixtures.trees import Trees

pytestmark = pytest.mark.only_rows


@pytest.fixture
def asked(mesh: Mesh) -> Mesh:
    """A session that asks for leases below two paths."""
    mesh.run(leases.set_prefixes, mesh.session, ["src", "src/api/", "docs"])
    return mesh


def take(mesh: Mesh, agent: AgentId, path: str) -> FileLease | None:
    return mesh.run(leases.take, mesh.begin(agent), path)


def held(mesh: Mesh) -> list[tuple[str, str]]:
    return mesh.conn.execute(
        "select prefix, a.name from agentmesh.leases l join agentmesh.agents a on a.id = agent_id"
    ).fetchall()


def test_the_first_writer_holds_it_and_the_next_is_told_who(asked: Mesh):
    one, two = (asked.fork(asked.root, name, "work") for name in ("one", "two"))
    for _ in range(2):
        found = take(asked, one, "src/api/a.py")
        assert found is not None
        assert (found.prefix, found.mine, found.name) == ("src/api/", True, "one"), "the longest prefix counts"
    other = take(asked, two, "src/api/b.py")
    assert other is not None
    assert (other.mine, other.name, other.agent_id) == (False, "one", one)
    assert take(asked, two, "src/apiary.py").mine  # type: ignore[union-attr]
    assert take(asked, two, "README.md") is None
    assert take(asked, two, "source/x") is None, "by whole names"
    assert violations(asked.conn) == []


@pytest.mark.parametrize("how", ["answer", "fail", "kill", "session"])
def test_it_ends_with_the_turn_and_with_its_holder(asked: Mesh, how: str):
    one = asked.fork(asked.root, "one", "work")
    assert take(asked, one, "src/a.py").mine  # type: ignore[union-attr]
    assert held(asked) == [("src", "one")]
    if how == "answer":
        asked.answer(one)
    elif how == "fail":
        asked.run(steps.fail_turn, asked.lease(one), {"error": "x"})
    elif how == "kill":
        asked.kill(one)
    else:
        asked.run(sessions.end_session, asked.session)
    assert held(asked) == []
    assert asked.one("select bool_or(holds_lease) from agentmesh.agents") is False
    assert violations(asked.conn) == []


def test_a_turn_that_goes_on_with_new_mail_keeps_it(asked: Mesh):
    one = asked.fork(asked.root, "one", "work")
    lease = asked.begin(one)
    asked.run(leases.take, lease, "src/a.py")
    asked.send(asked.root, one, "more")
    assert asked.run(steps.finish_step, lease, {"text": "done"}, [], {}).status == "running"
    assert held(asked) == [("src", "one")]
    assert asked.answer(one) == "idle"
    assert held(asked) == []


def test_an_own_tree_needs_none_and_who_lost_its_agent_gets_none(asked: Mesh):
    trees = Trees(asked)
    own = trees.own(asked.root, "own")
    assert take(asked, own, "src/a.py") is None
    lease = asked.begin(own)
    asked.kill(own)
    with pytest.raises(Fenced):
        asked.run(leases.take, lease, "src/a.py")


@pytest.mark.parametrize("path", ["/etc", "../x", "a/../b"])
def test_a_path_outside_of_the_directory_is_refused(mesh: Mesh, path: str):
    with pytest.raises(BadArgument):
        mesh.run(leases.set_prefixes, mesh.session, [path])


def test_the_whole_directory_and_a_new_session(mesh: Mesh):
    new = sessions.NewSession("/tmp", "testhost", "tester", "demo/demo", "x", [], leases=["."])
    root = mesh.run(sessions.start_session, new)
    assert mesh.run(leases.take, mesh.begin(root), "any/where").prefix == "."  # type: ignore[union-attr]


def test_the_second_writer_is_told_of_a_conflict_once(mesh: Mesh):
    trees = Trees(mesh)
    one, two = (trees.own(mesh.root, name) for name in ("one", "two"))
    a, b = trees.of(one).id, trees.of(two).id
    mesh.run(conflicts.note, a, b, ["x.txt", "y.txt"], two)
    untold = mesh.run(conflicts.untold, two)
    assert [(each.path, each.other, each.other_name) for each in untold] == [
        ("x.txt", one, "one"),
        ("y.txt", one, "one"),
    ]
    mesh.run(conflicts.told, [each.id for each in untold])
    mesh.run(conflicts.note, b, a, ["y.txt", "z.txt"], one)
    assert mesh.run(conflicts.untold, two) == []
    assert [each.path for each in mesh.run(conflicts.untold, one)] == ["z.txt"]
    assert [each.path for each in mesh.run(conflicts.listing, mesh.session)] == ["y.txt", "z.txt"], "x.txt fits again"
    mesh.run(conflicts.note, a, b, ["x.txt"], two)
    assert mesh.run(conflicts.untold, two) == [], "told once for this pair and file"
    assert [each.path for each in mesh.run(conflicts.listing, mesh.session)] == ["x.txt"]
