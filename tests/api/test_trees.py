"""Trees of agents' own from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentmesh
from tests.api.conftest import Open
from tests.fixtures import team
from tests.fixtures.engine import Rig
from tests.fixtures.repositories import git


@pytest.fixture
def shop(rig: Rig, open_mesh: Open, tmp_path: Path, monkeypatch) -> agentmesh.Mesh:
    """A mesh in the project of three agents."""
    monkeypatch.setenv("AGENTMESH_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(team.project(tmp_path / "shop"))
    team.script(rig)
    return open_mesh()


@pytest.mark.slow
def test_a_program_merges_looks_and_takes_back(shop: agentmesh.Mesh, tmp_path: Path):
    price = tmp_path / "shop" / "price.py"
    with shop.worker():
        session = shop.start_session(permission_mode="all")
        rounding, discount = (session.fork(name, "Do your part.", workspace="own") for name in ("rounding", "discount"))
        session.wait()
        assert price.read_text() == team.PRICE
        (change,) = discount.changes()
        assert (change.tool, change.path, change.added, change.removed) == ("bash", "price.py", 2, 2)
        assert "+    return round(net + vat, 2)" in rounding.diff()
        assert rounding.merge(preview=True).status == "preview"
        assert session.merge(rounding, check=team.CHECK).status == "merged"
        refused = discount.merge()
        assert (refused.status, refused.owner, refused.conflicts[0].path) == ("conflicts", "discount", "price.py")
        session.wait()
        assert discount.merge(check=team.CHECK).status == "merged"
        assert discount.merge().status == "nothing"
        assert price.read_text() == team.BOTH
        undone = session.root.undo()
        assert (undone.status, undone.merges) == ("done", ("discount",))
        assert "discount" not in price.read_text()
        assert session.root.redo().status == "done"
        assert price.read_text() == team.BOTH
        back = rounding.rewind(0)
        assert (back.status, back.row) == ("done", 0)
        assert [change.how for change in rounding.changes()] == ["edited", "taken back"]
    assert git(price.parent, "status", "--porcelain") == " M price.py"


def test_outside_a_repository_own_trees_are_refused_in_words(mesh: agentmesh.Mesh):
    session = mesh.start_session()
    with pytest.raises(agentmesh.AgentmeshError, match="Git repository"):
        session.fork("child", workspace="own")
    with pytest.raises(agentmesh.UsageError, match="no workspace"):
        session.fork("child", workspace="mine")  # type: ignore[arg-type]
    assert session.root.changes() == []
    assert session.root.diff() == ""
