"""The screen over two databases: the list of sessions has those of both, and leads to each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmesh.app.databases import Databases
from agentmesh.app.mesh import Mesh
from agentmesh.config.settings import load
from agentmesh.store import agents, sessions
from agentmesh.tui.board.session_chooser import _listed
from agentmesh.tui.commands.closing import close
from agentmesh.tui.main import _find


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
