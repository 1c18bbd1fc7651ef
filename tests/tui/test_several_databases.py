"""The screen over two databases: the list of sessions has those of both, and leads to each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmesh.app.databases import Answers, Databases
from agentmesh.app.mesh import Mesh
from agentmesh.config.settings import load
from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.domain.rows import Session
from agentmesh.store import agents, sessions
from agentmesh.tui.app import MeshApp
from agentmesh.tui.board.session_chooser import _listed
from agentmesh.tui.commands.closing import close
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.link import Opened
from agentmesh.tui.main import _find
from agentmesh.tui.widgets.chooser import Chooser
from tests.tui.piloting import enter, play, shown


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


def test_the_list_of_sessions_says_why_no_database_answers(databases):
    class Silent:
        def ask(self, _question: object) -> Answers[Any]:
            return Answers({}, {"a": DatabaseUnreachable("The database a cannot be reached.")})

    with pytest.raises(DatabaseUnreachable, match="cannot be reached"):
        _listed(databases.mesh("a"), Silent())  # type: ignore[arg-type]


def _mail(mesh: Mesh, session: Session) -> list[str]:
    with mesh.database.connection() as conn:
        query = "select body from agentmesh.mail where recipient = %s order by id"
        return [row[0] for row in conn.execute(query, [session.root_id])]
