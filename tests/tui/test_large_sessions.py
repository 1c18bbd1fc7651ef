"""A screen on a session of more agents than it shows."""

from __future__ import annotations

from agentmesh.domain.ids import AgentId, short
from agentmesh.store import sessions
from agentmesh.store.board import SOME
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
        await show.sees("› m700")
        await show.until(lambda: "m701 ›" in show.text)
        await show.press("ctrl+right")
        await show.sees("› m701")
        assert "lead › " in show.text

    on_screen(scene)


def hidden(mesh: Mesh, name: str) -> AgentId:
    """Make a dead agent that no board has unless it is wanted: more have died after it than a board shows."""
    by_name = crowd(mesh)
    mesh.send(None, by_name[name], "the needle")
    mesh.answer(by_name[name], "found")
    dead = [by_name[f"m{n}"] for n in range(300, 300 + SOME + 50)]
    mesh.kill(by_name[name])
    for one in dead:
        mesh.kill(one)
    return by_name[name]


def test_enter_on_a_hit_goes_to_one_of_the_dead_that_is_not_listed(mesh: Mesh, on_screen):
    agent = hidden(mesh, "m250")

    async def scene(show: Show) -> None:
        assert show.app.main.navigation.board
        assert not show.app.main.navigation.board.get(agent)
        await show.type("/search needle")
        await show.press("enter")
        await show.sees("the «needle»")
        await show.press("enter")
        await show.until(lambda: show.in_view == "m250")
        await show.sees("the needle", "› m250")

    on_screen(scene)


def test_enter_on_a_hit_of_the_reaped_says_why_it_leads_nowhere(mesh: Mesh, on_screen):
    agent = hidden(mesh, "m250")
    mesh.run(sessions.reap, mesh.session, agent)

    async def scene(show: Show) -> None:
        for _ in range(2):
            await show.type("/search needle")
            await show.press("enter")
            await show.sees("the «needle»")
            await show.press("enter")
            await show.sees(f"m250 has been reaped: agentmesh log {short(agent)} shows what it did")
            assert show.in_view == "root"
            await show.press("ctrl+down")
            await show.until(lambda: show.in_view == "lead")
            await show.press("ctrl+up")
            await show.until(lambda: show.in_view == "root")

    on_screen(scene)


def test_a_command_to_one_of_the_reaped_gives_back_what_was_typed_after_it(mesh: Mesh, on_screen):
    agent = mesh.fork(mesh.root, "one")
    mesh.kill(agent)
    mesh.run(sessions.reap, mesh.session, agent)

    async def scene(show: Show) -> None:
        await show.type("/agents one")
        await show.press("enter")
        await show.type("hello world")
        await show.press("enter")
        # It came back into the input, or the answer was faster than the fingers.
        await show.until(lambda: show.typed == "hello world" or mesh.unread(mesh.root) == ["hello world"])
        assert "not sent yet: hello" not in show.text
        if show.typed:
            assert f"one has been reaped: agentmesh log {short(agent)} shows what it did" in show.text
            await show.press("enter")
            await show.until(lambda: mesh.unread(mesh.root) == ["hello world"])

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
