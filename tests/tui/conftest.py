"""Scenes on a real database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from agentmesh.store.tx import Database
from tests.fixtures.mesh import Mesh
from tests.tui.piloting import Show, play, real, shown

Scene = Callable[[Show], Awaitable[None]]


@pytest.fixture
def on_screen(mesh: Mesh, db: Database, tmp_path) -> Callable[[Scene], None]:
    """Play a scene on the mesh's session, once its root is shown."""

    def begin(scene: Scene) -> None:
        async def whole() -> None:
            async with shown(real(mesh, db, tmp_path), (100, 30)) as show:
                await show.until(lambda: show.app.main.navigation.face)
                await scene(show)

        play(whole())

    return begin
