"""The app over a real database: what a person does becomes rows, and what others do is seen."""

from __future__ import annotations

import threading
from pathlib import Path

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus, PermissionMode
from agentmesh.store.tx import Database
from agentmesh.tui.board.table import TablePage
from agentmesh.tui.link import Opened
from tests.fixtures.mesh import Mesh
from tests.tui.piloting import Show, play, real, shown


def view_of(mesh: Mesh, agent: AgentId) -> list[tuple[str, str]]:
    rows = mesh.conn.execute(
        "select kind, content ->> 'text' from agentmesh.transcript where agent_id = %s order by seq", [agent]
    )
    return [(str(kind), str(text)) for kind, text in rows]


def test_what_is_typed_becomes_mail_and_what_is_answered_is_seen(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        await show.type("hello there")
        await show.press("enter")
        await show.sees("not read yet: hello there", "1 running")
        mesh.begin(mesh.root)
        mesh.answer(mesh.root, "the **answer**")
        await show.sees("▌ you", "the answer")
        await show.until(lambda: "not read yet" not in show.text)

    on_screen(scene)
    assert view_of(mesh, mesh.root) == [("user", "hello there"), ("assistant", "the **answer**")]


def test_forks_of_others_join_the_rotation_and_no_view_moves(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        mesh.fork(mesh.root, "tester", "look at this")
        await show.sees("▸ 1 child")
        assert show.in_view == "root"
        await show.press("ctrl+down")
        await show.sees("root › tester")
        mesh.begin(AgentId(mesh.one("select id from agentmesh.agents where name = 'tester'")))
        await show.sees("you  (the prompt of this fork)", "look at this")

    on_screen(scene)


def test_the_status_layer_follows_a_fan_in_wait(mesh: Mesh, on_screen):
    a, b, c = (mesh.fork(mesh.root, name, "work") for name in ("file-reader", "analyzer", "linter"))

    async def scene(show: Show) -> None:
        mesh.wait(mesh.root, a, b, c)
        await show.until(lambda: show.text.count("◐ running") == 3)
        mesh.send(a, mesh.root, "report")
        mesh.answer(b, "done")
        mesh.kill(c)
        await show.sees("✗ dead")
        await show.until(lambda: "◐ running" not in show.text)

    on_screen(scene)


def test_captured_text_becomes_the_prompt_of_the_fork_and_the_view_moves_there(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        for line in ("/capture", "secret one", "secret two"):
            await show.type(line)
            await show.press("enter")
            await show.sees("(capturing)")
        await show.sees("secret one", "secret two")
        await show.type("/fork")
        await show.press("enter")
        await show.sees("› fork")
        assert "(capturing)" not in show.text

    on_screen(scene)
    kinds = [kind for kind, _ in view_of(mesh, mesh.root)]
    assert kinds.count("capture") == 2
    assert "user" not in kinds
    fork = mesh.one("select id from agentmesh.agents where name = 'fork'")
    assert mesh.column("select body from agentmesh.mail where recipient = %s", fork) == ["secret one\n\nsecret two"]


def test_a_capture_that_was_open_is_open_on_another_screen(mesh: Mesh, on_screen):
    async def begins(show: Show) -> None:
        await show.type("/capture")
        await show.press("enter")
        await show.sees("(capturing)")

    async def finds(show: Show) -> None:
        await show.sees("(capturing)")

    on_screen(begins)
    on_screen(finds)


def test_the_dead_stay_in_the_rotation_until_they_are_reaped(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child", "work")

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        await show.press("ctrl+down")
        await show.type("/kill")
        await show.press("enter")
        await show.sees("Message root")
        await show.until(lambda: show.app.main.navigation.board and show.app.main.navigation.board.faces[child].is_dead)
        await show.press("ctrl+down")
        await show.sees("root › child", "✗ dead", "killed by")
        await show.press("ctrl+up")
        await show.type("/reap")
        await show.press("enter")
        await show.until(lambda: "below" not in show.text)

    on_screen(scene)
    assert mesh.status(child) == AgentStatus.DEAD


def test_a_session_that_ends_and_whose_dead_are_reaped_stays_in_view(mesh: Mesh, on_screen):
    """All of them were gone from the board then: the next line that was drawn ended the screen with a KeyError."""
    child = mesh.fork(mesh.root, "child", "work")

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        await show.press("ctrl+down")
        mesh.one("select agentmesh.end_session(%s)", mesh.session)
        await show.sees("root › child", "✗ the session has ended")
        mesh.one("select agentmesh.reap(%s)", mesh.session)
        await show.sees(" root", "✗ the session has ended", "killed by")

    async def comes_back(show: Show) -> None:
        await show.sees(" root", "✗ the session has ended", "killed by")
        await show.type("hello")
        await show.press("enter")
        await show.sees("✗ hello", " the session has ended: Tab")

    on_screen(scene)
    on_screen(comes_back)
    assert mesh.status(child) == AgentStatus.DEAD


def test_escape_interrupts_the_agent_in_view(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        mesh.begin(mesh.root)
        await show.sees("Esc interrupts")
        await show.press("escape")
        await show.until(
            lambda: mesh.one("select interrupt_turn = turn from agentmesh.agents where id = %s", mesh.root)
        )

    on_screen(scene)


def test_shift_tab_changes_the_mode_for_everybody(mesh: Mesh, on_screen):
    async def scene(show: Show) -> None:
        await show.press("shift+tab")
        await show.sees(" edits ")

    on_screen(scene)
    assert mesh.one("select permission_mode from agentmesh.sessions") == PermissionMode.EDITS


def test_a_query_shows_a_table_and_a_wrong_one_a_sentence(on_screen):
    async def scene(show: Show) -> None:
        await show.type("/sql select name from agentmesh.v_agents")
        await show.press("enter")
        await show.until(lambda: isinstance(show.app.screen, TablePage))
        assert "1 row" in show.text
        await show.press("escape")
        await show.type("/sql selekt")
        await show.press("enter")
        await show.sees("syntax error")

    on_screen(scene)


def test_an_agent_out_of_view_that_ends_its_turn_is_told_of(mesh: Mesh, on_screen):
    child = mesh.fork(mesh.root, "child", "work")

    async def scene(show: Show) -> None:
        await show.sees("▸ 1 child")
        mesh.answer(child, "done")
        await show.sees("child finished")

    on_screen(scene)


def test_two_screens_on_one_session_stay_in_step(mesh: Mesh, db: Database, tmp_path):
    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path), (100, 30)) as one, shown(real(mesh, db, tmp_path), (100, 30)) as two:
            await one.until(lambda: one.app.main.navigation.face)
            await one.type("from the first")
            await one.press("enter")
            await two.sees("not read yet: from the first")

    play(scene())


def test_older_rows_are_read_when_they_are_scrolled_to(mesh: Mesh, on_screen):
    for n in range(1, 330):
        mesh.conn.execute(
            "select agentmesh.append(%s, 'event', jsonb_build_object('event', 'test', 'text', %s::text))",
            [mesh.root, f"event {n:03}"],
        )

    async def scene(show: Show) -> None:
        await show.sees("event 329")
        for _ in range(400):
            if "event 001" in show.text:
                break
            await show.press("ctrl+home")
            await show.settled()
        assert "event 001" in show.text

    on_screen(scene)


def test_what_the_opening_waits_for_is_said_until_the_session_is_there(mesh: Mesh, db: Database, tmp_path: Path):
    goes = threading.Event()
    app = real(mesh, db, tmp_path)
    opening = app._opening

    def late() -> Opened:
        app.call_from_thread(app.main.show_trouble, "Waiting for MCP servers to start: slow")
        assert goes.wait(30)
        return opening()

    app._opening = late

    async def scene() -> None:
        async with app.run_test() as pilot:
            show = Show(app, pilot)
            await show.sees("Waiting for MCP servers to start: slow")
            goes.set()
            await show.until(lambda: "cost $" in show.text and "Waiting for MCP" not in show.text)

    play(scene())
