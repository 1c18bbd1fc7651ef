"""Picking one of many."""

from __future__ import annotations

from textual.content import Content

from agentmesh.app.models import OfferedModel
from agentmesh.tui.commands.calls import Call, Done, ModelList
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.screen import MainScreen
from agentmesh.tui.widgets.chooser import Choice, Chooser
from tests.tui.faces import face, id_of
from tests.tui.piloting import Show, asked, family, puppet


def test_an_agent_is_found_by_some_of_its_letters():
    async def scene(show: Show) -> None:
        await show.board(face("file-reader"), face("code-analyzer"), face("test-runner"))
        await show.press("ctrl+p")
        assert all(name in show.text for name in ("root", "file-reader", "code-analyzer", "test-runner"))
        await show.type("ca")
        assert "file-reader  " not in show.text
        await show.press("enter")
        assert show.in_view == "code-analyzer"
        assert show.typed == "", "the letters were meant for the picker"

    puppet(scene)


def test_the_highlight_begins_at_the_agent_in_view_and_goes_round():
    async def scene(show: Show) -> None:
        await show.board(*family())
        await show.press("ctrl+down", "ctrl+p", "down", "down", "enter")
        assert show.in_view == "alpha"
        await show.press("ctrl+p", "up", "up", "enter")
        assert show.in_view == "gamma"

    puppet(scene)


def test_nothing_found_is_said_and_enter_then_does_nothing():
    async def scene(show: Show) -> None:
        await show.press("ctrl+p")
        await show.type("zzz")
        assert "nothing matches" in show.text
        await show.press("enter")
        assert isinstance(show.app.screen, Chooser)
        await show.press("escape")
        assert isinstance(show.app.screen, MainScreen)
        assert show.in_view == "root"

    puppet(scene)


def test_foreign_names_are_not_markup():
    async def scene(show: Show) -> None:
        show.app.push_screen(Chooser("[/x]", [Choice(1, "[/a] [@click=app.exit]b[/]", Content(""), "[/c]")]))
        await show.pilot.pause()
        await show.type("exit")
        assert "[/a] [@click=app.exit]b[/]" in show.text
        assert "[/c]" in show.text

    puppet(scene)


def test_the_command_opens_it_too():
    async def scene(show: Show) -> None:
        await show.type("/agents")
        await show.press("enter")
        assert isinstance(show.app.screen, Chooser)

    assert puppet(scene).calls == []


def test_of_a_long_list_the_first_are_drawn_and_all_are_found():
    chosen: list[int | None] = []

    async def scene(show: Show) -> None:
        choices = [Choice(n, f"model-{n:04}", Content("")) for n in range(3_000)]
        show.app.push_screen(Chooser("Models", choices, highlighted=2_500), chosen.append)
        await show.pilot.pause()
        assert "model-2500" in show.text, "what is in use is drawn"
        assert "2,500 more: type some letters" in show.text
        await show.press("enter")
        show.app.push_screen(Chooser("Models", choices), chosen.append)
        await show.pilot.pause()
        await show.type("2999")
        assert "more: type" not in show.text
        await show.press("enter")

    puppet(scene)
    assert chosen == [2_500, 2_999]


def test_models_are_picked_with_their_windows_and_prices():
    async def scene(show: Show) -> None:
        offered = [OfferedModel("a/large", 200_000, 1.25, 10.0), OfferedModel("b/[b]local[/b]", None, None, None)]
        done = Done(models=ModelList("b/[b]local[/b]", offered))
        await show.post(ActionDone(Call("model"), id_of("root"), done))
        await show.sees("a/large", "200k context · $1.25 in, $10.00 out", "b/[b]local[/b]")
        await show.press("up", "enter")
        assert asked(show) == [Call("model", ("a/large",))]

    puppet(scene)
