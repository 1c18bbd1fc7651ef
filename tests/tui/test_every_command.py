"""Every command of docs/reference/screen.md is typed and entered, and reaches what carries it out.

What each does to the rows is in ``test_actions`` and its neighbours.
"""

from __future__ import annotations

import pytest

from agentmesh.tui.board.board_screen import BoardScreen
from agentmesh.tui.input.help import Help
from agentmesh.tui.requests.dialog import RequestDialog
from agentmesh.tui.widgets.chooser import Chooser
from tests.tui.faces import asking, face
from tests.tui.piloting import Show, asked, enter, puppet
from tests.tui.test_every_key import rows_below

ARGUMENTS = {
    "budget": ("alpha", "5"),
    "background": ("alpha",),
    "cancel": (),
    "capture": (),
    "clear": (),
    "compact": (),
    "context": (),
    "cost": (),
    "diff": ("alpha",),
    "export": ("md",),
    "fork": ("fixer", "Fix the tests"),
    "interrupt": ("all",),
    "kill": ("alpha",),
    "todo": ("add look again",),
    "later": ("10m", "look again"),
    "limits": ("turns", "50"),
    "mark": ("here",),
    "merge": ("alpha",),
    "mode": ("plan",),
    "model": ("openai/gpt-5-mini",),
    "new": (),
    "permissions": ("forget", "2"),
    "processes": (),
    "reap": ("alpha",),
    "rename": ("alpha", "beta"),
    "reply": ("#12 the port is 8080",),
    "retry": ("alpha", "beta"),
    "rewind": ("here",),
    "redo": (),
    "search": ("two words",),
    "send": ("alpha", "look at this"),
    "sql": ("select 1",),
    "system": ("Be brief.",),
    "timeline": ("alpha",),
    "task": ("explore", "Look at the tests"),
    "title": ("my session",),
    "tools": ("-bash",),
    "undo": ("--files",),
    "urgent": ("stop that",),
    "wait": ("60", "alpha"),
}
"""Commands that something else carries out, each with what is typed after it."""
OPENS = {"agents": Chooser, "answer": RequestDialog, "board": BoardScreen, "help": Help, "theme": Chooser}
"""Commands that only open something on the screen."""
ELSEWHERE = {"exit", "sessions"}
"""``/exit`` ends the app, and the list of ``/sessions`` needs a database: the tests below."""


def commands_of_page() -> set[str]:
    return {row[0].strip("`").removeprefix("/").split()[0] for row in rows_below("| command | does |")}


def test_every_command_of_the_page_is_entered_here():
    assert commands_of_page() == ARGUMENTS.keys() | OPENS.keys() | ELSEWHERE


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_command_is_carried_out_for_the_agent_in_view(name: str):
    async def scene(show: Show) -> None:
        await show.board(face("alpha"))
        await enter(show, " ".join([f"/{name}", *ARGUMENTS[name]]))
        assert [call.name for call in asked(show)] == [name]
        said = " ".join(asked(show)[0].args)
        assert all(word in said for argument in ARGUMENTS[name] for word in argument.split())
        assert show.typed == ""

    puppet(scene)


@pytest.mark.parametrize("name", OPENS)
def test_the_command_opens_its_page(name: str):
    async def scene(show: Show) -> None:
        show.app.main.presenter.opens_dialogs = False
        await show.board(asking("alpha"))
        await enter(show, f"/{name}")
        await show.until(lambda: isinstance(show.app.screen, OPENS[name]))
        assert asked(show) == []

    puppet(scene)


def test_exit_leaves():
    async def scene(show: Show) -> None:
        await enter(show, "/exit")
        assert show.app._exit

    puppet(scene)


def test_sessions_lists_them(on_screen):
    async def scene(show: Show) -> None:
        await enter(show, "/sessions")
        await show.until(lambda: isinstance(show.app.screen, Chooser))
        await show.sees("Sessions")

    on_screen(scene)
