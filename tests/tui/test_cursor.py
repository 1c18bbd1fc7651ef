"""A cursor over the entries of a conversation: fork from the one that has it, copy it, unfold it."""

from __future__ import annotations

import pytest
from textual import events

from agentmesh.domain.states import Kind
from agentmesh.tui.commands.calls import SAY, Call, Done
from agentmesh.tui.commands.messages import ActionDone
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.session.messages import RowsArrived
from tests.fixtures.mesh import Mesh
from tests.tui.faces import face, id_of
from tests.tui.piloting import Show, called, puppet, result, said
from tests.tui.test_fork_and_search import talk

KEYS_OF_ENTRIES = "Enter unfold or fold  F5 fork from here  F6 copy  Tab back"


def focused(show: Show) -> str | None:
    """Return the key of the entry that has the cursor."""
    view = show.app.main.focused
    return view.key if isinstance(view, EntryView) else None


CONVERSATION = (
    said(1, "Look here.", Kind.USER),
    said(2, "I look.", calls=[{"id": "a", "name": "bash", "arguments": '{"command": "ls"}'}]),
    result(3, 2, "bash", {"output": "one\ntwo", "exit_code": 0}),
    said(4, "There are two."),
    said(5, "interrupted", Kind.EVENT),
)


def test_the_cursor_reaches_every_entry_and_the_last_line_says_what_can_be_done_there():
    async def scene(show: Show) -> None:
        await show.rows(*CONVERSATION)
        usual = show.lines[-1]
        await show.press("tab")
        seen = [focused(show)]
        assert KEYS_OF_ENTRIES in show.lines[-1]
        for _ in range(5):
            await show.press("up")
            seen.append(focused(show))
        assert seen == ["5", "4", "2.0", "2", "1", "1"]
        await show.press("down")
        assert focused(show) == "2"
        await show.press("tab")
        assert focused(show) is None
        assert show.lines[-1] == usual

    puppet(scene)


@pytest.mark.parametrize(("ups", "row"), [(0, 5), (1, 4), (2, 2), (3, 2), (4, 0)])
def test_a_fork_begins_before_what_was_said_and_after_all_else(ups, row):
    async def scene(show: Show) -> None:
        await show.rows(*CONVERSATION)
        await show.press("tab", *["up"] * ups, "f5")
        assert show.app.calls == [Call("fork", (f"@{row}",))]  # type: ignore[attr-defined]
        assert focused(show) is None, "what is typed next is for the child"

    puppet(scene)


def test_f5_forks_from_the_message_under_the_cursor(mesh: Mesh, on_screen):
    talk(mesh, mesh.root, "one", "two")

    async def scene(show: Show) -> None:
        await show.sees("TWO")
        await show.press("tab", "up")
        assert focused(show) == "3"
        await show.press("f5")
        await show.sees("› fork", "Forked fork at row 2")
        await show.type("three")
        await show.press("enter")
        await show.sees("three")

    on_screen(scene)
    child = mesh.one("select id from agentmesh.agents where name = 'fork'")
    assert [content["text"] for _, content in mesh.context(child)] == ["one", "ONE"]
    assert mesh.one("select body from agentmesh.mail where recipient = %s", child) == "three"


def test_f5_in_the_conversation_of_the_dead_begins_a_session(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child")
    talk(mesh, child, "one")
    mesh.kill(child)

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        await show.press("ctrl+down")
        await show.until(lambda: show.in_view == "child")
        await show.sees("ONE")
        await show.press("tab")
        while focused(show) != "2":
            await show.press("up")
        await show.press("f5")
        await show.until(lambda: show.app.session and show.app.session.id != mesh.session)
        await show.sees("Message root", "ONE")

    on_screen(scene)


def test_what_was_inherited_is_forked_from_where_it_was_said():
    async def scene(show: Show) -> None:
        await show.board(face("child"))
        await show.press("ctrl+down")
        old = [said(1, "hello", Kind.USER)]
        await show.post(RowsArrived(id_of("child"), [said(1, "Do this.", Kind.MAIL, "child")], old, False, True, 1))
        await show.press("tab", "up", "f5")
        assert "Inherited: fork from it where it was said" in show.text
        assert show.app.calls == []  # type: ignore[attr-defined]

    puppet(scene)


def test_f6_copies_the_entry_under_the_cursor_and_else_the_last_answer(monkeypatch):
    copied: list[str] = []

    async def scene(show: Show) -> None:
        monkeypatch.setattr(show.app, "copy_to_clipboard", copied.append)
        await show.rows(*CONVERSATION)
        await show.press("f6", "tab", "f6", "up", "up", "f6", "up", "up", "f6")

    puppet(scene)
    assert copied == [
        "There are two.",
        "interrupted",
        'bash {"command": "ls"}\noutput: one\ntwo\nexit_code: 0',
        "Look here.",
    ]


def test_a_letter_and_a_click_on_words_leave_the_input_where_typing_goes():
    async def scene(show: Show) -> None:
        await show.rows(*CONVERSATION)
        await show.press("tab", "enter", "f")
        assert (focused(show), show.typed) == (None, "f")
        answer = next(view for view in show.app.main.views.query(EntryView) if view.key == "4")
        await show.pilot.click(answer)
        assert focused(show) is None

    puppet(scene)


@pytest.mark.parametrize("by_click", [True, False])
def test_what_is_typed_or_pasted_at_an_entry_is_all_in_the_input(by_click):
    async def scene(show: Show) -> None:
        await show.rows(*CONVERSATION)

        async def to_an_entry() -> None:
            if by_click:
                call = next(view for view in show.app.main.views.query(EntryView) if view.key == "2.0")
                await show.pilot.click(call, offset=(2, 0))
                await show.until(lambda: focused(show) == "2.0")
            else:
                await show.press("tab")
                assert focused(show) == "5"

        await to_an_entry()
        await show.type("ab cd ef")
        assert (focused(show), show.typed) == (None, "ab cd ef")
        await show.press("ctrl+c")
        await to_an_entry()
        await show.post(events.Paste("one\ntwo"))
        assert (focused(show), show.typed) == (None, "one\ntwo")

    puppet(scene)


def test_unfolding_at_the_bottom_shows_the_beginning_of_the_output():
    async def scene(show: Show) -> None:
        output = "\n".join(f"line {n}" for n in range(100))
        call = called(2, "bash", '{"command": "seq 100"}')
        await show.rows(said(1, "\n\n".join(map(str, range(40)))), call, result(3, 2, "bash", {"output": output}))
        await show.press("tab", "enter")
        await show.sees("▾ bash", "line 0", "line 3")

    puppet(scene)


def test_escape_at_an_entry_goes_back_to_the_input_and_interrupts_nobody():
    async def scene(show: Show) -> None:
        await show.board(face("root", None, "running"))
        await show.rows(*CONVERSATION)
        await show.press("tab", "up", "escape")
        assert (focused(show), show.app.calls) == (None, [])  # type: ignore[attr-defined]
        await show.press("escape")
        assert show.app.calls == [Call("interrupt")]  # type: ignore[attr-defined]

    puppet(scene)


def test_the_message_in_progress_is_passed_over():
    async def scene(show: Show) -> None:
        await show.rows(said(1, "Look here.", Kind.USER))
        await show.stream("I lo")
        await show.press("tab")
        assert focused(show) == "1"
        await show.rows(said(2, "I look."), first=False)
        await show.press("down")
        assert focused(show) == "2"

    puppet(scene)


def test_the_cursor_goes_on_above_what_is_mounted():
    async def scene(show: Show) -> None:
        await show.rows(*(said(n, f"message {n}") for n in range(1, 31)))
        assert len(show.app.main.views.query(EntryView)) < 30
        await show.press("tab")
        for n in range(29, 0, -1):
            await show.press("up")
            while focused(show) != str(n):  # it is being mounted
                await show.settled()
                await show.press("up")
        await show.until(lambda: "message 1\n" in show.text)

    puppet(scene)


def test_what_is_typed_leads_down_to_where_its_row_will_be():
    async def scene(show: Show) -> None:
        await show.rows(*(said(n, f"message {n}") for n in range(1, 31)))
        await show.press("pageup", "pageup")
        await show.settled()
        assert "message 30" not in show.text
        await show.post(ActionDone(Call("mode", ("plan",)), id_of("root"), Done()))
        assert "message 30" not in show.text, "a key was pressed"
        await show.post(ActionDone(Call("search", ("x",), "/search x"), id_of("root"), Done("Nothing found.")))
        assert "message 30" not in show.text
        await show.post(ActionDone(Call(SAY, ("hello",), "hello"), id_of("root"), Done()))
        await show.sees("message 30")

    puppet(scene)
