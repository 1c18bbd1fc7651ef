"""Directories of workspaces whose rows are in another database of the mesh."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tests.cli.several.conftest import begin, configure, served


@pytest.fixture
def folder(am: CommandLine, urls: dict[str, str], tmp_path: Path) -> Path:
    """The directory of a workspace that database ``a`` knows."""
    am.folder.mkdir()
    for url in urls.values():
        served(url)
    begin(urls["a"], am.folder)
    with psycopg.connect(urls["a"]) as conn:
        found = conn.execute("select id from agentmesh.workspaces").fetchone()
    assert found is not None
    return made(tmp_path, found[0])


def made(tmp_path: Path, workspace: uuid.UUID) -> Path:
    folder = tmp_path / "data" / "trees" / str(workspace)
    (folder / "tree").mkdir(parents=True)
    (folder / "tree" / "draft.txt").write_text("d")
    return folder


def test_a_directory_of_another_database_is_neither_offered_nor_removed(am: CommandLine, folder: Path):
    looked = am("workspaces", "--repair", "--database", "b", "--yes")
    assert "belongs to no workspace" not in looked.out + looked.err
    assert "belongs to no workspace" not in am("doctor", "--deep").out
    refused = am("workspaces", "remove", folder.name, "--database", "b", "--yes")
    assert (refused.code, refused.out) == (1, "")
    assert f"the database a knows {folder.name}" in refused.err
    assert "--database a" in refused.err
    assert (folder / "tree" / "draft.txt").exists()


def test_nothing_is_removed_while_a_database_does_not_answer(am: CommandLine, urls: dict[str, str], folder: Path):
    configure(am, urls | {"c": "postgresql://nobody@127.0.0.1:1/none"})
    stray = made(folder.parents[2], uuid.uuid4())
    refused = am("workspaces", "remove", stray.name, "--database", "b", "--yes")
    assert refused.code == 1
    assert f"the database c does not answer, and may know {stray.name}" in refused.err
    assert "belongs to no workspace" not in am("workspaces", "--repair", "--database", "b", "--yes").err
    assert stray.exists()


def test_a_directory_that_no_database_knows_is_offered_with_the_whole_command(am: CommandLine, folder: Path):
    stray = made(folder.parents[2], uuid.uuid4())
    looked = am("workspaces", "--repair", "--database", "b", "--yes")
    assert f"agentmesh workspaces remove {stray.name} --database b" in looked.out + looked.err


def test_a_database_without_a_url_of_its_own_is_asked_too(am: CommandLine, urls: dict[str, str], folder: Path):
    am.configure(f"database_url = '{urls['a']}'\n[databases.a]\n[databases.b]\nurl = '{urls['b']}'\n")
    refused = am("workspaces", "remove", folder.name, "--database", "b", "--yes")
    assert (refused.code, f"the database a knows {folder.name}" in refused.err) == (1, True), refused.err
    assert (folder / "tree" / "draft.txt").exists()
