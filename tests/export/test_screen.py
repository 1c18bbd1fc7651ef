"""/export and /timeline in the terminal UI."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agentmesh.store.tx import Database
from agentmesh.tui.commands.calls import Done, Failed
from tests.fixtures.mesh import Mesh
from tests.tui.faces import board
from tests.tui.piloting import play, real, shown
from tests.tui.test_actions import Person
from tests.tui.with_defaults import completions


@pytest.fixture
def me(mesh: Mesh, db: Database, tmp_path):
    mesh.conn.execute("update agentmesh.sessions set workdir = %s", [str(tmp_path)])
    one = Person(mesh, db, tmp_path)
    yield one
    one.actions.stop()


def test_export_writes_a_page_under_a_name_that_is_free(mesh: Mesh, me: Person, tmp_path: Path):
    stem = f"agentmesh-{str(mesh.session)[:8]}"
    assert me.types("/export") == Done(f"Wrote {tmp_path / stem}.html.")
    assert me.types("/export") == Done(f"Wrote {tmp_path / stem}-2.html.")
    page = tmp_path / f"{stem}.html"
    assert page.read_text().startswith("<!doctype html>")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_format_a_file_or_both_can_be_named(mesh: Mesh, me: Person, tmp_path: Path):
    assert me.types("/export md") == Done(f"Wrote {tmp_path}/agentmesh-{str(mesh.session)[:8]}.md.")
    assert me.types("/export my notes.md") == Done(f"Wrote {tmp_path}/my notes.md.")
    assert me.types("/export html 'our notes.html'") == Done(f"Wrote {tmp_path}/our notes.html.")
    assert me.types('/export "a --b.md"') == Done(f"Wrote {tmp_path}/a --b.md.")
    assert me.types("/export jsonl rows.txt") == Done(f"Wrote {tmp_path}/rows.txt.")
    assert (tmp_path / "my notes.md").read_text().startswith("# Session")
    assert (tmp_path / "rows.txt").read_text().startswith('{"type": "export"')


def test_what_cannot_be_written_is_said_and_given_back(mesh: Mesh, me: Person, tmp_path: Path):
    (tmp_path / "mine.md").write_text("mine")
    for typed, words in (
        ("/export mine.md", "exists"),
        ("/export 'mine.md'", "exists"),
        ("/export md mine.md --force", "/export has no --force"),
        ("/export --force mine.md", "/export has no --force"),
        ("/export notes.doc", "ends in no format"),
        ("/export 'a.md' 'b.md'", "ends in no format"),
        ("/export nowhere/x.md", "cannot be written: No such file"),
        ("/export ~nobody-of-this-name/x.md", "names an unknown home directory"),
    ):
        failed = me.types(typed)
        assert isinstance(failed, Failed)
        assert words in failed.text
        assert "force" not in failed.hint
        assert failed.typed == typed
    assert (tmp_path / "mine.md").read_text() == "mine"


def test_timeline_is_of_all_or_of_an_agent_and_all_below_it(mesh: Mesh, me: Person):
    mesh.fork(mesh.fork(mesh.root, "child"), "grandchild")
    everybody, child = me.types("/timeline").timeline, me.types("/timeline child").timeline
    assert [lane.name for lane in everybody.lanes] == ["root", "child", "grandchild"]
    assert [lane.name for lane in child.lanes] == ["child", "grandchild"]
    failed = me.types("/timeline nobody")
    assert isinstance(failed, Failed)
    assert "nobody" in failed.text


def test_formats_are_completed():
    assert [one.text for one in completions("/export md", 10, board())] == ["md "]


def test_the_time_line_is_shown_and_left(mesh: Mesh, db: Database, tmp_path):
    mesh.kill(mesh.fork(mesh.root, "helper", "work"))

    async def scene() -> None:
        async with shown(real(mesh, db, tmp_path), (100, 24)) as show:
            await show.until(lambda: show.app.main.navigation.face)
            await show.type("/timeline ")
            await show.press("enter")
            await show.sees("└─ helper", "✗ dead", "model call", "Esc or q leaves")
            await show.press("escape")
            await show.until(lambda: show.app.screen is show.app.main)

    play(scene())
