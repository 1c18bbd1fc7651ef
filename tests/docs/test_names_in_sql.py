"""Statements of the pages: one that finds an agent by its name means one, though every session may have one of it."""

from __future__ import annotations

import pytest

from agentmesh.domain.ids import AgentId
from tests.docs.blocks import ROOT, read
from tests.fixtures.mesh import Mesh


def last_sql(page: str) -> str:
    """Return the last block of SQL of a page."""
    return [block.text for block in read(ROOT / page) if block.language == "sql"][-1]


def test_the_guide_has_a_query_for_each_view(mesh: Mesh):
    shown = " ".join(block.text for block in read(ROOT / "docs/how-to/sql.md") if block.language == "sql")
    views = mesh.column("select viewname from pg_views where schemaname = 'agentmesh' and starts_with(viewname, 'v_')")
    assert len(views) > 20
    assert [view for view in views if f"agentmesh.{view} " not in shown.replace(";", " ")] == []


def newest_of_two(mesh: Mesh, name: str) -> AgentId:
    """Fork an agent of that name in two sessions; return the second one."""
    mesh.fork(mesh.root, name)
    return mesh.fork(mesh.new_session(), name)


def test_the_readme_writes_to_the_newest_reviewer_alone(mesh: Mesh):
    newest = newest_of_two(mesh, "code-reviewer")
    mesh.conn.execute(last_sql("README.md"))
    assert mesh.column("select recipient from agentmesh.mail where body = 'Leave out the tests'") == [newest]


@pytest.mark.parametrize("lives", [True, False])
def test_the_guide_can_be_followed_twice(mesh: Mesh, lives: bool):
    newest = newest_of_two(mesh, "counter")
    if not lives:
        mesh.kill(newest)
    mesh.conn.execute(last_sql("docs/how-to/sql.md"))
    found = mesh.column("select recipient from agentmesh.mail where body = 'Still there?'")
    assert found == ([newest] if lives else [])
