"""A screen whose database a newer agentmesh has upgraded says so, and writes nothing any more."""

from __future__ import annotations

from agentmesh.store import code
from tests.fixtures.mesh import Mesh
from tests.tui.piloting import Show

UPGRADED = "update agentmesh.alembic_version set version_num = '9999'"
SAID = f"A newer agentmesh has upgraded the database to schema 9999-{code.digest()}, and this screen stands still"


def test_an_upgrade_is_told_and_what_is_said_then_stays_in_the_input(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child")

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        mesh.conn.execute(UPGRADED)
        await show.sees(SAID)
        await show.type("hello")
        await show.press("enter")
        await show.sees(f"✗ {SAID[:40]}")
        await show.until(lambda: show.typed == "hello")
        await show.press("escape", "ctrl+down")
        await show.until(lambda: show.in_view == "child")

    on_screen(scene)
    assert mesh.one("select count(*) from agentmesh.mail where session_id = %s", mesh.session) == 0
    assert mesh.one("select count(*) from agentmesh.transcript where agent_id in (%s, %s)", mesh.root, child) == 0
