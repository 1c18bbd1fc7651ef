"""/search and /fork @: from what was found, and from earlier places of a conversation."""

from __future__ import annotations

from textual.geometry import Region

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, sessions
from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import Call, Problem
from agentmesh.tui.commands.parse import parse
from agentmesh.tui.conversation.entries import Note
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.window import Window
from agentmesh.tui.widgets.chooser import Chooser
from tests.fixtures.mesh import Mesh
from tests.tui.piloting import Show


def talk(mesh: Mesh, agent: AgentId, *words: str) -> None:
    for word in words:
        mesh.send(None, agent, word)
        mesh.answer(agent, word.upper())


def in_sight(show: Show, key: str) -> bool:
    """Whether the entry of a row is in sight."""
    scrollback = show.app.main.views.current
    entry = next((view for view in scrollback.query(EntryView) if view.key == key), None) if scrollback else None
    if scrollback is None or entry is None:
        return False
    seen = Region(0, int(scrollback.scroll_y), scrollback.size.width, scrollback.size.height)
    return bool(seen.overlaps(entry.virtual_region))


def test_enter_on_a_hit_goes_to_the_agent_at_that_row(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child")
    talk(mesh, child, "first", "the needle [/x]", *(f"later {n}" for n in range(60)))
    talk(mesh, mesh.root, "hello")

    async def scene(show: Show) -> None:
        await show.sees("HELLO")
        await show.type("/search needle")
        await show.press("enter")
        await show.sees("Found", "the «needle» [/x]")
        assert show.in_view == "root"
        await show.press("down", "enter")
        await show.until(lambda: show.in_view == "child")
        await show.until(lambda: in_sight(show, "3"))
        await show.type("/search needle")
        await show.press("escape", "enter")  # the completions first
        await show.until(lambda: isinstance(show.app.screen, Chooser))
        await show.press("escape")
        await show.press("end")
        await show.type("/search first")
        await show.press("enter")
        await show.until(lambda: isinstance(show.app.screen, Chooser))
        await show.press("down", "enter")
        await show.until(lambda: in_sight(show, "1"))
        assert show.in_view == "child"

    on_screen(scene)


def test_nothing_found_and_nothing_asked_for_are_said(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        await show.type("/search nowhere")
        await show.press("enter")
        await show.sees("Nothing found for nowhere")
        await show.type("/search -x")
        await show.press("enter")
        await show.sees("no word to look for")
        assert show.typed == "/search -x"

    on_screen(scene)


def test_who_has_been_reaped_is_not_gone_to(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child")
    talk(mesh, child, "needle")
    mesh.kill(child)
    mesh.run(sessions.reap, mesh.session)

    async def scene(show: Show) -> None:
        await show.type("/search needle")
        await show.press("enter")
        await show.sees("«needle»")
        await show.press("enter")
        await show.sees("has been reaped")
        assert show.in_view == "root"

    on_screen(scene)


def test_a_fork_begins_at_the_place_that_was_picked(mesh: Mesh, on_screen):
    talk(mesh, mesh.root, "one", "two")

    async def scene(show: Show) -> None:
        await show.sees("TWO")
        await show.type("/fork @")
        await show.press("enter")
        await show.sees("Fork from where?", "after  row 4", "answer: TWO", "before row 3", "you: two")
        await show.press("down", "enter")
        await show.sees("› fork", "Forked fork at row 2")

    on_screen(scene)
    child = mesh.one("select id from agentmesh.agents where name = 'fork'")
    assert [content["text"] for _, content in mesh.context(child)] == ["one", "ONE"]


def test_a_fork_at_a_row_and_at_none(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        await show.type("/fork @")
        await show.press("enter")
        await show.sees("root has been told nothing yet")
        await show.type("/fork @there")
        await show.press("escape", "enter")
        await show.sees("@there is no place to begin at: @ lists them")
        talk(mesh, mesh.root, "one")
        for _ in range(len("/fork @there")):
            await show.press("backspace")
        await show.type("/fork @9")
        await show.press("enter")
        await show.sees("has no row 9")
        for _ in range(len("9")):
            await show.press("backspace")
        await show.type("1")
        await show.press("enter")
        await show.sees("› fork")

    on_screen(scene)
    assert mesh.one("select forked_at from agentmesh.agents where name = 'fork'") == 1


def test_a_capture_stays_open_when_a_fork_shall_begin_elsewhere(mesh: Mesh, on_screen):
    talk(mesh, mesh.root, "one")

    async def scene(show: Show) -> None:
        await show.type("/capture")
        await show.press("enter")
        await show.sees("(capturing)")
        await show.type("/fork @1")
        await show.press("enter")
        await show.sees("a capture is open")

    on_screen(scene)
    assert mesh.one("select count(*) from agentmesh.agents where session_id = %s", mesh.session) == 1


def test_from_the_dead_a_session_begins_and_is_shown(mesh: Mesh, db: Database, on_screen):
    child = mesh.fork(mesh.root, "child")
    talk(mesh, child, "one")
    mesh.kill(child)

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        show.app.main._ask(Call("fork", ("@2",)))  # of the root, which is alive
        await show.sees("has no row 2")
        await show.press("ctrl+down")
        await show.until(lambda: show.in_view == "child")
        show.app.main._ask(Call("fork", ("@2",)))  # the dead have no input
        await show.until(lambda: show.app.session and show.app.session.id != mesh.session)
        await show.sees("Message root", "ONE")

    on_screen(scene)
    (made,) = mesh.column("select root_id from agentmesh.sessions where id <> %s", mesh.session)
    assert db.run(agents.get, made).name == "root"


def test_a_phrase_keeps_its_quotes():
    assert parse('/search "two words"') == Call("search", ('"two words"',), '/search "two words"')
    assert isinstance(parse("/search"), Problem)
    assert parse("/fork @12") == Call("fork", ("@12",), "/fork @12")


def test_a_row_is_shown_by_the_entry_that_it_belongs_to():
    notes = [Note(key, "event", "x") for key in ("inherited", "3", "4.0", "4.1", "9")]  # type: ignore[arg-type]
    window = Window(notes)
    assert [window.place_of_row(row) for row in (1, 3, 4, 5, 8, 9, 99)] == [0, 1, 2, 3, 3, 4, 4]
    assert Window().place_of_row(1) is None
