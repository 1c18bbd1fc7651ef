"""Every key of docs/reference/screen.md is pressed, and does what the page says.

The page is what is read here, so a key that it gains has no scene until somebody writes one.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agentmesh.domain.ids import MailId
from agentmesh.tui.board.board_screen import BoardScreen
from agentmesh.tui.board.board_table import BoardTable
from agentmesh.tui.commands.calls import ANSWER, SAY, TAKE_BACK, Call
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.input.help import Help
from agentmesh.tui.requests.dialog import RequestDialog
from agentmesh.tui.requests.request_list import RequestList
from agentmesh.tui.review.page import ReviewPage
from agentmesh.tui.session.state import Pending
from agentmesh.tui.widgets.chooser import Chooser
from agentmesh.tui.widgets.confirm import Confirm
from tests.e2e import test_tui_terminal
from tests.tui import test_board, test_request_list, test_requests, test_review
from tests.tui.faces import asking, face, id_of, request, task
from tests.tui.piloting import Puppet, Show, asked, called, enter, puppet, result, said
from tests.tui.test_cursor import CONVERSATION, focused
from tests.tui.test_tasks import CALL, sub_agent

Scene = Callable[[Show, str], Awaitable[None]]
"""Presses a key, by Textual's name, and checks what it does."""
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "screen.md"
SIGNS = {
    "←": "left",
    "→": "right",
    "↑": "up",
    "↓": "down",
    "Esc": "escape",
    "PgUp": "pageup",
    "PgDn": "pagedown",
    "Del": "delete",
    "_": "underscore",
}
IN_A_TERMINAL = {"app.suspend": test_tui_terminal.test_ctrl_z_suspends_to_the_shell_and_fg_brings_the_screen_back}
"""Keys that need a real terminal, and the tests that press them there."""


def rows_below(header: str) -> Iterator[list[str]]:
    """Yield the rows of the page's table with this header."""
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line == header:
            next(lines)
            break
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def textual_name(label: str) -> str:
    """Return Textual's name of a key as the page writes it: ``Ctrl+←`` is ``ctrl+left``."""
    return "+".join(SIGNS.get(part, part.lower()) for part in label.split("+"))


def keys_of_page() -> list[tuple[str, str]]:
    """Return each id of the page's table with each of its keys."""
    header = "| key | does | where | name in `[tui.keys]` |"
    found = [(row[3].strip("`"), label) for row in rows_below(header) for label in row[0].split(", ")]
    assert len(found) > 50
    return [(id_, textual_name(label)) for id_, label in found]


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let keys of dialogs count at once."""
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.GRACE", 0.0)
    monkeypatch.setattr("agentmesh.tui.requests.guarded_dialog.BURST", 0.05)


# Other agents


def goes(to: str, *before: str, typed: str = "") -> Scene:
    """Return a scene in which a key leads to an agent, after these keys and this text."""

    async def scene(show: Show, key: str) -> None:
        await show.board(face("alpha"), face("beta"), face("gamma"))
        await show.press(*before)
        await show.type(typed)
        await show.press(key)
        assert show.in_view == to

    return scene


async def picks(show: Show, key: str) -> None:
    await show.board(face("alpha"), face("beta"))
    await show.press(key)
    await show.type("bet")
    await show.press("enter")
    assert show.in_view == "beta"


async def shows_the_tree(show: Show, key: str) -> None:
    await show.board(face("alpha"))
    await show.press(key)
    await show.sees("└ ○ alpha idle")
    await show.press(key)
    assert "└ ○ alpha idle" not in show.text


async def opens_the_board(show: Show, key: str) -> None:
    await show.press(key)
    assert isinstance(show.app.screen, BoardScreen)


async def enters_the_task(show: Show, key: str) -> None:
    await show.board(sub_agent(), tasks=[task("look")])
    await show.rows(CALL)
    await show.press(key)
    await show.until(lambda: show.in_view == "look")


async def sends_the_task_to_the_background(show: Show, key: str) -> None:
    await show.board(sub_agent(), tasks=[task("look")])
    await show.rows(CALL)
    await show.press(key)
    assert asked(show) == [Call("background", ("look",))]


async def goes_to_a_need(show: Show, key: str) -> None:
    await show.board(face("alpha"), face("beta", unseen=True))
    await show.press(key)
    assert show.in_view == "beta"


async def opens_requests(show: Show, key: str) -> None:
    show.app.main.presenter.opens_dialogs = False
    await show.board(asking("alpha"))
    await show.press(key)
    await show.until(lambda: isinstance(show.app.screen, RequestDialog))


# The session


async def interrupts(show: Show, key: str) -> None:
    show.app.main.interrupt_key._presses._seconds = 3600.0  # however busy the machine is
    await show.board(face("root", None, "running"), face("alpha", status="running"))
    await show.press(key)
    assert asked(show) == [Call("interrupt")]
    await show.press(key)
    await show.until(lambda: isinstance(show.app.screen, Confirm))


async def takes_back(show: Show, key: str) -> None:
    await show.board(face("root", None, "running", pending=(Pending(MailId(7), "never mind"),)))
    await show.press(key)
    assert asked(show) == [Call(TAKE_BACK, ("7",))]


async def changes_the_mode(show: Show, key: str) -> None:
    await show.press(key)
    assert asked(show) == [Call("mode", ("edits",))]


async def leaves(show: Show, key: str) -> None:
    show.app.main._leave_key._presses._seconds = 3600.0
    await show.type("words")
    await show.press(key)
    assert show.typed == ""
    await show.press(key)
    assert show.app._exit


async def helps(show: Show, key: str) -> None:
    await show.press(key)
    assert isinstance(show.app.screen, Help)


# The conversation


async def folds_calls(show: Show, key: str) -> None:
    await show.rows(*CONVERSATION)
    assert "▸ bash" in show.text
    await show.press(key)
    await show.sees("▾ bash", "two")
    await show.press(key)
    await show.sees("▸ bash")


async def copies(show: Show, key: str) -> None:
    await show.rows(*CONVERSATION)
    await show.press(key)
    assert show.app.clipboard == "There are two."
    await show.press("tab", "up", "up", "up", key)
    assert show.app.clipboard == "I look."


def scrolls(sees: str, *before: str) -> Scene:
    """Return a scene in which a key brings a line of a long answer into sight."""

    async def scene(show: Show, key: str) -> None:
        await show.rows(said(1, "\n\n".join(f"line {n}." for n in range(100))))
        await show.until(lambda: "line 99." in show.text)
        await show.press(*before)
        await show.until(lambda: not before or sees not in show.text)
        await show.press(key)
        await show.sees(sees)

    return scene


async def forks(show: Show, key: str) -> None:
    await show.rows(*CONVERSATION)
    await show.press("tab", "up", key)
    assert asked(show) == [Call("fork", ("@4",))]


async def folds_an_entry(show: Show, key: str) -> None:
    await show.rows(called(1, "bash", '{"command": "ls"}'), result(2, 1, "bash", {"output": "one", "exit_code": 0}))
    await show.press("tab", key)
    await show.sees("▾ bash", "one")
    await show.press(key)
    await show.sees("▸ bash")


async def enters_a_task(show: Show, key: str) -> None:
    await show.board(sub_agent(), tasks=[task("look")])
    await show.rows(CALL)
    await show.press("tab", key)
    await show.until(lambda: show.in_view == "look")


def moves_in_entries(to: str | None, *before: str) -> Scene:
    async def scene(show: Show, key: str) -> None:
        await show.rows(*CONVERSATION)
        await show.press("tab", *before)
        assert isinstance(show.app.main.focused, EntryView)
        await show.press(key)
        assert focused(show) == to

    return scene


# The input


async def sends(show: Show, key: str) -> None:
    await show.type("hello")
    await show.press(key)
    assert [(call.name, call.args) for call in asked(show)] == [(SAY, ("hello",))]


async def breaks_the_line(show: Show, key: str) -> None:
    await show.press("a", key, "b")
    assert show.typed == "a\nb"
    assert asked(show) == []


async def completes(show: Show, key: str) -> None:
    await show.type("/tim")
    await show.press(key)
    assert show.typed.strip() == "/timeline"


async def brings_older_input(show: Show, key: str) -> None:
    await enter(show, "one")
    await enter(show, "two")
    await show.press(key, key)
    assert show.typed == "one"


async def brings_newer_input(show: Show, key: str) -> None:
    await enter(show, "one")
    await enter(show, "two")
    await show.press("up", "up", key)
    assert show.typed == "two"


async def searches_input(show: Show, key: str) -> None:
    await enter(show, "run the tests")
    await show.press(key)
    assert isinstance(show.app.screen, Chooser)
    await show.type("tests")
    await show.press("enter")
    assert show.typed == "run the tests"


async def undoes(show: Show, key: str) -> None:
    await show.type("one two")
    await show.press("ctrl+w", key)
    assert show.typed == "one two"


async def edits_outside(show: Show, key: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        write = "import sys; open(sys.argv[1], 'a').write(' edited')"
        patch.setenv("VISUAL", f'{sys.executable} -c "{write}"')
        patch.setattr(show.app, "suspend", nullcontext)  # there is no terminal to hand over
        await show.type("draft")
        await show.press(key)
    assert show.typed == "draft edited"


# The board


async def shows_the_silent(show: Show, key: str) -> None:
    await test_board.opened(show, face("quiet", silent=True))
    assert test_board.names(show) == ["root"]
    await show.press(key)
    assert test_board.names(show) == ["root", "quiet"]


def on_board(*, acts: Callable[[Show], bool], before: tuple[str, ...] = ()) -> Scene:
    """Return a scene in which a key does something on the board of ``test_board.team``."""

    async def scene(show: Show, key: str) -> None:
        await test_board.opened(show)
        await show.press(*before)
        assert not acts(show)
        await show.press(key)
        assert acts(show), show.text

    return scene


def highlighted(name: str) -> Callable[[Show], bool]:
    def check(show: Show) -> bool:
        row = show.app.screen.query_one(BoardTable).highlighted
        return row is not None and row.face.name == name

    return check


def has_asked(name: str, agent: str) -> Callable[[Show], bool]:
    return lambda show: [(call.name, who) for call, who in test_board.hand(show).asked] == [(name, id_of(agent))]


async def moves_a_page(show: Show, key: str) -> None:
    await test_board.opened(show, *(face(f"agent-{n:02}") for n in range(60)))
    table = show.app.screen.query_one(BoardTable)
    await show.press("end" if key == "pageup" else "home")
    before = table._rows.index(table.highlighted)
    await show.press(key)
    assert abs(table._rows.index(table.highlighted) - before) > 5


KEYS: dict[str, Scene] = {
    "rotate.previous": goes("beta", "ctrl+down"),
    "rotate.next": goes("beta", "ctrl+down", "ctrl+left", "ctrl+left"),
    "rotate.parent": goes("root", "ctrl+down"),
    "rotate.child": goes("gamma"),
    "rotate.previous_always": goes("beta", "ctrl+down", typed="some words"),
    "rotate.next_always": goes("alpha", "ctrl+down", typed="some words"),
    "agents.pick": picks,
    "agents.tree": shows_the_tree,
    "board.open": opens_the_board,
    "task.enter": enters_the_task,
    "task.background": sends_the_task_to_the_background,
    "needs.next": goes_to_a_need,
    "requests.answer": opens_requests,
    "agent.interrupt": interrupts,
    "mail.take_back": takes_back,
    "mode.next": changes_the_mode,
    "folds.toggle": folds_calls,
    "answer.copy": copies,
    "scroll.page_up": scrolls("line 84."),
    "scroll.page_down": scrolls("line 99.", "pageup"),
    "scroll.top": scrolls("line 0."),
    "scroll.bottom": scrolls("line 99.", "ctrl+home"),
    "app.help": helps,
    "app.quit": leaves,
    "prompt.submit": sends,
    "prompt.newline": breaks_the_line,
    "prompt.complete": completes,
    "prompt.older": brings_older_input,
    "prompt.newer": brings_newer_input,
    "prompt.search": searches_input,
    "prompt.undo": undoes,
    "prompt.editor": edits_outside,
    "entry.fork": forks,
    "entry.fold": folds_an_entry,
    "entry.enter": enters_a_task,
    "entry.older": moves_in_entries("4"),
    "entry.newer": moves_in_entries("4", "up", "up"),
    "entry.leave": moves_in_entries(None),
    "board.go": on_board(acts=lambda show: not isinstance(show.app.screen, BoardScreen) and show.in_view == "asking"),
    "board.select": on_board(acts=lambda show: bool(show.app.screen.query_one(BoardTable).selected)),
    "board.interrupt": on_board(before=("down", "down", "down"), acts=has_asked("interrupt", "works")),
    "board.kill": on_board(acts=lambda show: isinstance(show.app.screen, Confirm) and "Kill 1 agent" in show.text),
    "board.retry": on_board(before=("down",), acts=has_asked("retry", "broke")),
    "board.answer": on_board(acts=lambda show: not isinstance(show.app.screen, BoardScreen)),
    "board.write": on_board(acts=lambda show: "Message to asking" in show.text),
    "board.seen": on_board(before=("down", "down"), acts=lambda show: bool(test_board.hand(show).seen)),
    "board.everywhere": on_board(acts=lambda show: "Reading all sessions" in show.text),
    "board.silent": shows_the_silent,
    "board.up": on_board(before=("down",), acts=highlighted("asking")),
    "board.down": on_board(acts=highlighted("broke")),
    "board.page_up": moves_a_page,
    "board.page_down": moves_a_page,
    "board.top": on_board(before=("down", "down"), acts=highlighted("asking")),
    "board.bottom": on_board(acts=highlighted("gone")),
}


def test_every_key_of_the_page_has_a_scene_and_no_scene_is_left_over():
    assert {id_ for id_, _ in keys_of_page()} == KEYS.keys() | IN_A_TERMINAL.keys()


@pytest.mark.parametrize(("id_", "key"), [each for each in keys_of_page() if each[0] not in IN_A_TERMINAL])
def test_the_key_does_what_the_page_says(id_: str, key: str):
    async def scene(show: Show) -> None:
        await KEYS[id_](show, key)
        assert key in show.pressed

    puppet(scene)


# What the page says of the pages and dialogs that have keys of their own


async def press(show: Show, *keys: str) -> None:
    """Press keys of a dialog, each long enough after the other that it is no part of a word."""
    await test_requests.press(show, *keys)


def moves_in_review(*pairs: tuple[str, str]) -> Scene:
    """Return a scene in which the second key of each pair undoes the first."""

    async def scene(show: Show, _: str) -> None:
        view = await test_review.opened(show, *(test_review.changed(path=f"f{n}.py", seq=n) for n in range(20)))
        for there, back in pairs:
            begun = view._cursor
            await show.press(there)
            assert view._cursor != begun, there
            await show.press(back)
            assert view._cursor == begun, back

    return scene


async def scrolls_review(show: Show, _: str) -> None:
    diff = "@@ -1 +1 @@\n+" + "x" * 90 + "THE END\n"
    await test_review.opened(show, test_review.changed(diff=diff))
    await show.press(*["right"] * 8)
    await show.sees("THE END")
    await show.press(*["left"] * 8)
    assert "THE END" not in show.text


async def notes(show: Show, _: str) -> None:
    await test_review.opened(show, test_review.changed())
    for key, text in (("c", "first"), ("enter", "second")):
        await show.press("down", "down", "down", key)
        await show.type(text)
        await show.press("enter")
        await show.sees(f"✎ {text}")


async def sends_notes(show: Show, _: str) -> None:
    await test_review.opened(show, test_review.changed())
    await test_review.note(show, "why?", "down", "down", "down")
    await show.press("s")
    await show.until(lambda: asked(show)[-1].name == SAY)


async def leaves_review(show: Show, _: str) -> None:
    for key in ("escape", "q"):
        await test_review.opened(show, test_review.changed())
        await show.press(key)
        await show.until(lambda: not isinstance(show.app.screen, ReviewPage))


REVIEW: dict[str, Scene] = {
    "↑ ↓, PgUp PgDn, Home End, or `k` `j`, `g` `G`": moves_in_review(
        ("down", "up"), ("j", "k"), ("pagedown", "pageup"), ("end", "home"), ("G", "g")
    ),
    "`n` `p`": moves_in_review(("n", "p")),
    "← →": scrolls_review,
    "`c` or Enter, or a double click": notes,
    "`s`": sends_notes,
    "Esc or `q`": leaves_review,
}


def answers(answer: dict[str, Any], *keys: str, tool: str = "bash", **more: Any) -> Scene:
    """Return a scene in which a dialog's keys give an answer."""

    async def scene(show: Show, _: str) -> None:
        await show.board(asking("alpha", request("alpha", tool, **more)))
        await test_requests.opened(show)
        await press(show, *keys)
        await test_requests.closed(show)
        assert [json.loads(call.args[1]) for call in asked(show) if call.name == ANSWER] == [answer]

    return scene


async def accepts_edits(show: Show, _: str) -> None:
    await show.board(asking("alpha", request("alpha", "write", {"path": "a.py", "content": "x"})))
    await test_requests.opened(show)
    await press(show, "s")
    assert asked(show) == []
    await press(show, "s")
    await test_requests.closed(show)
    assert {call.name for call in asked(show)} == {ANSWER, "mode"}


async def goes_to_the_asker(show: Show, _: str) -> None:
    await show.board(asking("alpha"))
    await test_requests.opened(show)
    await press(show, "g")
    await test_requests.closed(show)
    assert show.in_view == "alpha"
    assert asked(show) == []


async def answers_later(show: Show, _: str) -> None:
    await show.board(asking("alpha"))
    await test_requests.opened(show)
    await press(show, "escape")
    await test_requests.closed(show)
    assert asked(show) == []
    assert "1 needs you" in show.text


ANSWERS: dict[str, Scene] = {
    "`y`": answers({"decision": "once"}, "y"),
    "`a`, then Enter twice": answers({"decision": "always"}, "a", "enter", "enter"),
    "`s`, and `s` again": accepts_edits,
    "`n`": answers({"decision": "no", "reason": "later"}, "n", *"later", "enter"),
    "`e`": answers(
        {"decision": "once", "arguments": {"command": "git push -n", "timeout": 120.0}}, "e", *" -n", "enter"
    ),
    "`g`": goes_to_the_asker,
    "Esc": answers_later,
}


def in_list(*keys: str, then: Callable[[Show], bool]) -> Scene:
    """Return a scene in which keys do something in the list of requests."""

    async def scene(show: Show, _: str) -> None:
        await test_request_list.listing(show, *test_request_list.FAN, test_request_list.PUSH)
        await test_request_list.press(show, *keys)
        await show.until(lambda: then(show))

    return scene


def has_decided(decision: str, count: int) -> Callable[[Show], bool]:
    def check(show: Show) -> bool:
        assert isinstance(show.app, Puppet)
        given = test_request_list.answered(show.app)
        return [(len(ids), answer["decision"]) for ids, answer in given] == [(count, decision)]

    return check


IN_LIST: dict[str, Scene] = {
    "↑ ↓": in_list("down", "up", "down", then=lambda show: "❯ [ ] coder" in show.text),
    "Space, or a click": in_list("space", then=lambda show: "[x] 7 agents" in show.text),
    "`y`, and `y` again": in_list("a", "y", "y", then=has_decided("once", 8)),
    "`n`": in_list("space", "n", "enter", then=has_decided("no", 7)),
    "Enter": in_list("down", "enter", then=lambda show: isinstance(show.app.screen, RequestDialog)),
    "Esc": in_list("escape", then=lambda show: not isinstance(show.app.screen, RequestList)),
}
TABLES = {"| key | does |": REVIEW, "| key | answer |": ANSWERS, "| key | in the list |": IN_LIST}


@pytest.mark.parametrize("header", TABLES)
def test_every_row_of_the_other_tables_has_a_scene(header: str):
    assert [row[0] for row in rows_below(header)] == [*TABLES[header]]


@pytest.mark.parametrize(("header", "cell"), [(header, cell) for header, scenes in TABLES.items() for cell in scenes])
def test_the_keys_of_the_row_do_what_the_page_says(header: str, cell: str):
    async def scene(show: Show) -> None:
        await TABLES[header][cell](show, cell)
        mentioned = [key for key in re.findall(r"`(\w)`|\b(Enter|Esc|Space)\b", cell) for key in key if key]
        assert {textual_name(key) if len(key) > 1 else key for key in mentioned} <= set(show.pressed)

    puppet(scene)


def test_labels_are_textuals_names():
    named = {textual_name(label) for label in ("Ctrl+←", "Shift+Tab", "PgDn", "Ctrl+_", "F12")}
    assert named == {"ctrl+left", "shift+tab", "pagedown", "ctrl+underscore", "f12"}
