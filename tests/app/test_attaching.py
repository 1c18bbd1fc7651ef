"""Images that a person names: which are attached, and which are refused before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh.app.attaching import attach, mentions
from agentmesh.domain.errors import BadImage
from agentmesh.store.tx import Database
from agentmesh.tools.gate import ToolGate
from tests.fixtures.mesh import Mesh
from tests.fixtures.pictures import png


@pytest.fixture
def mesh(conn: psycopg.Connection) -> Mesh:
    return Mesh(conn)


def names(mesh: Mesh, db: Database, workdir: Path, text: str = "", *paths: Path, **more: bool) -> list[str]:
    found = attach(db, mesh.root, workdir, text, paths, **more)
    return [one["name"] for one in found.references] if found else []


def test_images_are_found_by_their_mentions():
    text = """see @a.png, (@b.JPG) and @"c d.webp": not me@x.png, @e.svg, @f.gif, @src/ or @notes.md"""
    assert list(mentions(text)) == ["a.png", "b.JPG", "c d.webp"]


def test_named_images_are_stored_once(mesh: Mesh, db: Database, tmp_path: Path):
    (tmp_path / "a.png").write_bytes(png())
    (tmp_path / "c d.png").write_bytes(png(5, 5))
    assert names(mesh, db, tmp_path, 'look at @a.png and @"c d.png", then @a.png again.') == ["a.png", "c d.png"]
    assert mesh.one("select count(*) from agentmesh.images") == 2


def test_a_name_without_a_file_stays_text(mesh: Mesh, db: Database, tmp_path: Path):
    assert names(mesh, db, tmp_path, "write it to @new.png") == []


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"words", "is not a PNG"), (b"", "is empty"), (png()[:-3], "damaged"), (png() + b"\0" * (50 << 20), "50.0 MiB")],
)
def test_a_bad_file_is_refused_and_nothing_is_stored(mesh: Mesh, db: Database, tmp_path: Path, data: bytes, why: str):
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(BadImage, match=why):
        attach(db, mesh.root, tmp_path, "@a.png")
    assert mesh.one("select count(*) from agentmesh.images") == 0


def test_thirty_images_are_too_many(mesh: Mesh, db: Database, tmp_path: Path):
    for n in range(30):
        (tmp_path / f"{n}.png").write_bytes(png())
    with pytest.raises(BadImage, match="30 images are too many"):
        attach(db, mesh.root, tmp_path, " ".join(f"@{n}.png" for n in range(30)))


def test_a_mention_leads_out_of_the_directory_only_where_a_person_sees_it(mesh: Mesh, db: Database, tmp_path: Path):
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "a.png").write_bytes(png())
    (inside / "link.png").symlink_to(tmp_path / "a.png")
    for text in ("@../a.png", f"@{tmp_path}/a.png", "@link.png"):
        with pytest.raises(BadImage, match="outside the working directory"):
            attach(db, mesh.root, inside, text)
        assert names(mesh, db, inside, text, anywhere=True)
    assert names(mesh, db, inside, "", tmp_path / "a.png") == ["a.png"]


def test_a_deny_rule_holds_for_images_too(mesh: Mesh, db: Database, tmp_path: Path):
    (tmp_path / "a.png").write_bytes(png())
    rules = '[[{"effect": "deny", "tool": "read", "pattern": "*.png"}]]'
    mesh.conn.execute("update agentmesh.agents set permissions = %s::jsonb where id = %s", [rules, mesh.root])
    for text, paths in (("@a.png", ()), ("", (tmp_path / "a.png",))):
        with pytest.raises(BadImage, match="A rule keeps agents from reading") as refused:
            attach(db, mesh.root, tmp_path, text, paths, anywhere=True)
        assert "`agentmesh doctor`" in refused.value.hint


@pytest.mark.parametrize("named", [True, False])
def test_an_image_that_becomes_a_link_after_it_was_judged_is_not_sent(
    mesh: Mesh, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
):
    (tmp_path / "a.png").write_bytes(png(2, 2))
    (tmp_path / "b.png").write_bytes(png(3, 3))
    judge = ToolGate.judge

    def then_swap(gate: ToolGate, *given: Any) -> Any:
        verdict = judge(gate, *given)
        (tmp_path / "a.png").unlink()
        (tmp_path / "a.png").symlink_to("b.png")
        return verdict

    monkeypatch.setattr(ToolGate, "judge", then_swap)
    with pytest.raises(BadImage, match=r"a\.png changed while it was opened"):
        attach(db, mesh.root, tmp_path, "@a.png" if named else "", () if named else [tmp_path / "a.png"])
    assert mesh.one("select count(*) from agentmesh.images") == 0


def test_a_path_that_cannot_be_read_says_why(mesh: Mesh, db: Database, tmp_path: Path):
    with pytest.raises(BadImage, match="No such file"):
        attach(db, mesh.root, tmp_path, paths=[tmp_path / "none.png"])
    with pytest.raises(BadImage, match=r"no regular file|Is a directory"):
        attach(db, mesh.root, tmp_path, paths=[tmp_path])
