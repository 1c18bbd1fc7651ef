"""A screen on a session of more agents than it shows."""

from __future__ import annotations

from tests.fixtures.mesh import Mesh
from tests.store.test_crowd import MANY, crowd
from tests.tui.piloting import Show

LAST = f"m{MANY}"


def test_who_is_not_listed_is_reached_by_name_and_its_siblings_by_the_keys(mesh: Mesh, on_screen):
    crowd(mesh)

    async def scene(show: Show) -> None:
        await show.press("ctrl+p")
        await show.sees("some of many")
        await show.type("m700")
        await show.sees("not listed: Enter looks for it")
        await show.press("enter")
        await show.until(lambda: show.in_view == "m700")
        await show.sees("[m700]")
        await show.until(lambda: "→m701" in show.text)
        await show.press("ctrl+right")
        await show.sees("[m701]")
        assert "↑lead" in show.text

    on_screen(scene)


def test_a_name_that_nobody_has_is_said(mesh: Mesh, on_screen):
    crowd(mesh)

    async def scene(show: Show) -> None:
        await show.press("ctrl+p")
        await show.sees("some of many")
        await show.type("nobody-at-all")
        await show.press("enter")
        await show.sees("there is no agent 'nobody-at-all'")
        assert show.in_view == "root"

    on_screen(scene)


def test_the_command_goes_to_an_agent_too(mesh: Mesh, on_screen):
    crowd(mesh)

    async def scene(show: Show) -> None:
        await show.type(f"/agents {LAST}")
        await show.press("enter")
        await show.until(lambda: show.in_view == LAST)

    on_screen(scene)
