"""The screen over two databases: the list of sessions has those of both, and leads to each."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentmesh.app.databases import Databases
from agentmesh.app.mesh import Mesh
from agentmesh.app.meshes import DatabaseAnswers
from agentmesh.app.moving import move
from agentmesh.config.settings import load
from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Session
from agentmesh.store import agents, sessions
from agentmesh.tui.app import MeshApp
from agentmesh.tui.board.session_chooser import _listed
from agentmesh.tui.commands.closing import close
from agentmesh.tui.commands.context import CommandContext
from agentmesh.tui.commands.search import search
from agentmesh.tui.commands.shell import Shells
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.link import Opened
from agentmesh.tui.main import _find
from agentmesh.tui.session.surroundings import Surroundings, SurroundingsReader
from agentmesh.tui.widgets.chooser import Chooser
from agentmesh.tui.widgets.lines import plain
from tests.tui.faces import board, id_of
from tests.tui.piloting import Show, enter, play, shown
from tests.tui.with_defaults import status_line


@pytest.fixture
def databases(new_database: Any, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Databases]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with new_database(template) as a, new_database(template) as b:
        (tmp_path / "config.toml").write_text(f"[databases.a]\nurl = '{a}'\n[databases.b]\nurl = '{b}'\n")
        environ = {"AGENTMESH_CONFIG_DIR": str(tmp_path), "AGENTMESH_DATA_DIR": str(tmp_path / "data")}
        with Databases(load({}, environ, None), role="tui", what="test", environ={}) as made:
            yield made


def begin(mesh: Mesh, workdir: Path, title: str) -> str:
    here = mesh.place
    new = sessions.NewSession(str(workdir), here.host, here.os_user, "demo/demo", "You are.", [], title=title)
    root = mesh.database.run(sessions.start_session, new)
    return str(mesh.database.run(agents.get, root).session_id)


def test_the_list_has_the_sessions_of_all_databases_the_newest_first(databases, tmp_path):
    for n, name in enumerate(("a", "b", "a")):
        begin(databases.mesh(name), tmp_path, f"session {n}")
    listed, missing = _listed(databases.mesh("a"), databases)
    assert [(one.title, name) for one, _, name in listed] == [
        ("session 2", "a"),
        ("session 1", "b"),
        ("session 0", "a"),
    ]
    assert all(mesh is databases.mesh(name) for _, mesh, name in listed)
    assert missing == ""


def test_the_first_session_is_found_in_all_databases(databases, tmp_path):
    older, newer = (begin(databases.mesh(name), tmp_path, name) for name in ("b", "a"))
    ways: dict[str, Any] = {"begins": False, "resume": None, "pick": False}
    assert _find(databases, workdir=tmp_path, **ways) is databases.mesh("a")
    assert _find(databases, workdir=tmp_path, **{**ways, "resume": older[:8]}) is databases.mesh("b")
    assert _find(databases, workdir=tmp_path / "elsewhere", **{**ways, "pick": True}) is databases.mesh("a")
    assert _find(databases, workdir=tmp_path, **{**ways, "begins": True}) in map(databases.mesh, "ab")
    assert newer != older


def test_the_line_at_leaving_names_the_session(databases, tmp_path):
    mesh = databases.mesh("b")
    session = mesh.find_session(session=begin(mesh, tmp_path, "x"), workdir=tmp_path)
    mesh.database.run(agents.fork, session.root_id, "child", None)
    assert f"agentmesh --resume {str(session.id)[:8]}" in close(mesh, session)


def test_a_chosen_session_of_another_database_is_shown_and_written_to(databases, tmp_path):
    here, there = databases.mesh("a"), databases.mesh("b")
    begun = {
        mesh: mesh.find_session(session=begin(mesh, tmp_path, name), workdir=tmp_path)
        for mesh, name in ((there, "of b"), (here, "of a"))
    }

    async def whole() -> None:
        opened = Opened(here, begun[here], "", None, databases, "without the database c")
        async with shown(MeshApp(lambda: opened, keymap=Keymap()), (100, 30)) as show:
            await show.sees("without the database c")
            await enter(show, "/sessions")
            await show.until(lambda: isinstance(show.app.screen, Chooser))
            await show.sees("of a", "of b", " b · ")
            await show.press("down", "enter")
            await show.until(lambda: show.app.session and show.app.session.id == begun[there].id)
            assert show.app.opened
            assert show.app.opened.mesh is there
            await show.until(lambda: show.app.main.navigation.face)
            await enter(show, "hello b")
            await show.until(lambda: _mail(there, begun[there]) == ["hello b"])
            assert _mail(here, begun[here]) == []

    play(whole())


def test_the_screen_follows_a_session_that_moves_and_keeps_agent_and_input(databases, tmp_path):
    here, there = databases.mesh("a"), databases.mesh("b")
    session = here.find_session(session=begin(here, tmp_path, "of a"), workdir=tmp_path)
    child = here.database.run(agents.fork, session.root_id, "child", None)

    async def whole() -> None:
        async with shown(
            MeshApp(lambda: Opened(here, session, "", None, databases), keymap=Keymap()), (100, 30)
        ) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.press(*"for the root")
            show.app.main.navigation.go(child, "child")
            await show.until(lambda: show.app.main.navigation.in_view == child)
            await show.press(*"half a thought")
            await asyncio.to_thread(move, databases, session, here, "b")
            await show.sees("and is shown from there", "half a thought")
            await show.until(lambda: show.app.opened and show.app.opened.mesh is there)
            await show.until(lambda: show.app.main.navigation.in_view == child)
            await show.press("enter")
            await show.until(lambda: _mail(there, session, child) == ["half a thought"])
            show.app.main.navigation.go(session.root_id, "root")
            await show.sees("for the root")

    play(whole())


def test_a_screen_that_is_covered_follows_once_it_is_seen_again(databases, tmp_path):
    here, there = databases.mesh("a"), databases.mesh("b")
    session = here.find_session(session=begin(here, tmp_path, "of a"), workdir=tmp_path)

    async def whole() -> None:
        async with shown(
            MeshApp(lambda: Opened(here, session, "", None, databases), keymap=Keymap()), (100, 30)
        ) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.press("f1")
            covering = show.app.screen
            assert covering is not show.app.main
            await asyncio.to_thread(move, databases, session, here, "b")
            await show.until(lambda: "screen" not in [thread.name for thread in threading.enumerate()])
            assert show.app.screen is covering
            await show.press("escape")
            await show.sees("and is shown from there")
            assert show.app.opened
            assert show.app.opened.mesh is there

    play(whole())


def test_the_list_of_sessions_says_why_no_database_answers(databases):
    class Silent:
        def ask(self, _question: object) -> DatabaseAnswers[Any]:
            return DatabaseAnswers({}, {"a": DatabaseUnreachable("The database a cannot be reached.")})

    with pytest.raises(DatabaseUnreachable, match="cannot be reached"):
        _listed(databases.mesh("a"), Silent())  # type: ignore[arg-type]


def choosing(
    databases: Databases, folder: Path, titles: Sequence[str], scene: Callable[[Show], Coroutine[Any, Any, None]]
) -> None:
    """Begin sessions with these titles, the oldest first; play a scene that ends in the oldest, from its list on."""
    mesh = databases.mesh("a")
    begun = [mesh.find_session(session=begin(mesh, folder, title), workdir=folder) for title in titles]

    async def whole() -> None:
        opened = Opened(mesh, begun[-1], "", None, None, "")
        async with shown(MeshApp(lambda: opened, keymap=Keymap()), (100, 30)) as show:
            await show.until(lambda: show.app.session)
            await enter(show, "/sessions")
            await scene(show)
            await show.until(lambda: show.app.session and show.app.session.id == begun[0].id)

    play(whole())


def test_a_session_that_is_not_listed_is_looked_for_by_its_words(databases, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "LISTED", 2)

    async def scene(show: Show) -> None:
        await show.sees("Sessions · the newest 2")
        await show.press(*"absent", "enter")
        await show.sees("No session fits “absent”")
        await show.press(*"ancient")
        await show.sees("not listed: Enter looks for it")
        await show.press("enter")
        await show.sees("Sessions with “ancient”")
        await show.press("enter")

    choosing(databases, tmp_path, ("ancient", "one", "two"), scene)


def test_a_word_that_fits_a_listed_session_finds_older_ones_too(databases, tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "LISTED", 2)

    async def scene(show: Show) -> None:
        await show.press(*"task")
        await show.sees("… look for it in all")
        await show.press("up", "enter")
        await show.sees("Sessions with “task”", "old task")
        await show.press("down", "enter")

    choosing(databases, tmp_path, ("old task", "one", "task"), scene)


def _mail(mesh: Mesh, session: Session, agent: AgentId | None = None) -> list[str]:
    with mesh.database.connection() as conn:
        query = "select body from agentmesh.mail where recipient = %s order by id"
        return [row[0] for row in conn.execute(query, [agent or session.root_id])]


def test_the_board_shows_the_sessions_of_all_databases_and_leads_into_another(databases, tmp_path):
    here, there = databases.mesh("a"), databases.mesh("b")
    begun = {
        mesh: mesh.find_session(session=begin(mesh, tmp_path, title), workdir=tmp_path)
        for mesh, title in ((there, "[red]of b[/x]"), (here, "of a"))
    }

    async def whole() -> None:
        opened = Opened(here, begun[here], "", None, databases)
        async with shown(MeshApp(lambda: opened, keymap=Keymap()), (80, 24)) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.press("f12", "f12")
            await show.sees("all sessions", "of a", "[red]of b[/x]")
            assert re.search(r"of a +a$", show.text, re.MULTILINE)
            assert re.search(r"of b\[/x\] +b$", show.text, re.MULTILINE)
            await show.press("[", "r", "e", "d")
            await show.until(lambda: "of a" not in show.text)
            await show.press("enter")
            await show.until(lambda: show.app.session and show.app.session.id == begun[there].id)
            assert show.app.opened
            assert show.app.opened.mesh is there

    play(whole())


def test_the_board_names_a_database_that_hangs_and_shows_the_others(databases, tmp_path, monkeypatch):
    here = databases.mesh("a")
    session = here.find_session(session=begin(here, tmp_path, "of a"), workdir=tmp_path)
    end = threading.Event()
    usual: Callable[[str], Mesh] = databases.mesh

    def hangs(name: str) -> Mesh:
        if name == "b":
            end.wait(60)
        return usual(name)

    monkeypatch.setattr(databases, "mesh", hangs)

    async def whole() -> None:
        opened = Opened(here, session, "", None, databases)
        async with shown(MeshApp(lambda: opened, keymap=Keymap()), (80, 24)) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.press("f12", "f12")
            await show.sees("1 agent", "of a")
            await show.sees("without b")

    try:
        play(whole())
    finally:
        end.set()


def test_a_thousand_sessions_are_read_without_holding_up_keys(databases, tmp_path):
    here, there = databases.mesh("a"), databases.mesh("b")
    session = here.find_session(session=begin(here, tmp_path, "of a"), workdir=tmp_path)
    like = there.find_session(session=begin(there, tmp_path, "of b"), workdir=tmp_path)
    with there.database.connection() as conn:
        conn.execute(
            "select agentmesh.start_session(s.workdir || '/' || n, s.host, s.os_user, a.model, t.system_prompt,"
            " t.tools)"
            " from agentmesh.sessions s join agentmesh.agents a on a.id = s.root_id"
            " join agentmesh.settings t on t.id = a.settings_id, generate_series(1, 1000) n where s.id = %s",
            [like.id],
        )

    async def whole() -> None:
        opened = Opened(here, session, "", None, databases)
        async with shown(MeshApp(lambda: opened, keymap=Keymap()), (80, 24)) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.press("f12", "f12")
            await show.until(lambda: re.search(r"newest 100 sessions · (\d{2,}) agents", show.text))
            await show.press("escape")
            await show.until(lambda: show.app.screen is show.app.main)

    play(whole())


def test_the_status_line_names_the_database(databases, tmp_path):
    here = databases.mesh("b")
    session = here.find_session(session=begin(here, tmp_path, "x"), workdir=tmp_path)
    around = SurroundingsReader(here, session, has_files=True).read(session.root_id, "demo/demo")
    assert around.database == "b"
    long = Surroundings(database="d" * 32)
    assert "db " + "d" * 19 + "…" in plain(status_line(board(), id_of("root"), 80, around=long))
    assert "db " not in plain(status_line(board(), id_of("root"), 80))


def test_search_looks_into_all_databases_and_enter_leads_to_the_row(databases, tmp_path):
    here, there = databases.mesh("a"), databases.mesh("b")
    begun = {
        mesh: mesh.find_session(session=begin(mesh, tmp_path, title), workdir=tmp_path)
        for mesh, title in ((there, "of b"), (here, "of a"))
    }
    for mesh, session in begun.items():
        with mesh.database.connection() as conn:
            conn.execute(
                "insert into agentmesh.transcript (agent_id, seq, kind, content)"
                """ select %s, n, 'assistant', jsonb_build_object('text', n || ' the needle [red]')"""
                " from generate_series(1, 3) n",
                [session.root_id],
            )

    async def whole() -> None:
        opened = Opened(here, begun[here], "", None, databases)
        async with shown(MeshApp(lambda: opened, keymap=Keymap()), (80, 24)) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await enter(show, "/search needle")
            await show.sees("Found 3")
            await show.press("escape")
            await enter(show, "/search --all needle")
            await show.sees("Found 6", f"{str(begun[there].id)[:8]} in b", f"{str(begun[here].id)[:8]} in a", "[red]")
            await show.press("down", "down", "down", "enter")  # those of a are newer
            await show.until(lambda: show.app.session and show.app.session.id == begun[there].id)
            await show.until(lambda: show.app.main.navigation.face)

    play(whole())


def test_search_says_which_database_is_missing_and_what_was_not_looked_into(databases, tmp_path, monkeypatch):
    here = databases.mesh("a")
    session = here.find_session(session=begin(here, tmp_path, "x"), workdir=tmp_path)
    usual: Callable[[str], Mesh] = databases.mesh

    def gone(name: str) -> Mesh:
        if name == "b":
            raise DatabaseUnreachable("gone")
        return usual(name)

    monkeypatch.setattr(databases, "mesh", gone)
    ctx = CommandContext(here, session, Shells(), session.root_id, threading.Event(), databases)
    said = "Nothing found for nowhere in any session. Without the database b, which does not answer."
    assert search(ctx, "--all", "nowhere").text == said
