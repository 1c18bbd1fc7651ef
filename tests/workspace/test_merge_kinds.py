"""Merges of what is no plain text: programs, links, binary files, files against directories, and files too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.app.tree_words import about_merge
from agentmesh.config.schema import Workspace as Settings
from agentmesh.store import sessions
from agentmesh.workspace import merging
from agentmesh.workspace.results import MergeResult, MergeStatus
from tests.fixtures.engine import Rig, call
from tests.fixtures.repositories import git, write
from tests.workspace.conftest import edit, here, tree_of, with_child

pytestmark = pytest.mark.timeout(120)


def merged(rig: Rig, command: str, meanwhile: str = "") -> MergeResult:
    """Let a child change files by a command, change the user's by another, and merge."""
    with_child(rig, call("bash", command=command))
    if meanwhile:
        os.system(f"cd {rig.workdir} && {meanwhile}")
    return merging.merge(here(rig), rig.agent("child"))


def said(rig: Rig, result: MergeResult) -> str:
    """Return what people read about a merge."""
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    return about_merge(result, rig.db.run(sessions.get, session)).text


def test_bits_links_and_binary_files_come_as_they_are(grove: Rig):
    rig = grove
    command = "chmod +x a.txt; ln -s a.txt link; printf '\\0\\1' > raw; rm new.txt; mkdir new.txt; echo x > new.txt/in"
    result = merged(rig, command)
    assert result.status is MergeStatus.MERGED
    assert os.access(rig.workdir / "a.txt", os.X_OK)
    assert os.readlink(rig.workdir / "link") == "a.txt"
    assert (rig.workdir / "raw").read_bytes() == b"\0\1"
    assert (rig.workdir / "new.txt/in").read_text() == "x\n"
    assert {one.path: one.status for one in result.files}["a.txt"] == "changed"


@pytest.mark.parametrize(
    ("command", "meanwhile", "path"),
    [
        ("printf '\\0child' > raw", "printf '\\0user' > raw", "raw"),
        ("rm a.txt", "echo changed > a.txt", "a.txt"),
        ("echo changed > a.txt", "rm a.txt", "a.txt"),
        ("ln -s a.txt link", "ln -s new.txt link", "link"),
    ],
    ids=["binary", "removed here", "removed there", "links"],
)
def test_what_has_no_two_sides_of_text_is_a_conflict_in_words(grove: Rig, command: str, meanwhile: str, path: str):
    rig = grove
    result = merged(rig, command, meanwhile)
    assert result.status is MergeStatus.CONFLICTS
    assert [one.path for one in result.conflicts] == [path]
    mails = [content["text"] for kind, content in rig.rows("child") if kind == "mail"]
    waiting = rig.one("select body from agentmesh.mail where recipient = %s order by id desc", rig.agent("child"))
    assert any(path in text for text in (*mails, waiting))
    rig.rest()
    down = merging.merge(here(rig), rig.agent("child"), down=True)
    assert down.status is MergeStatus.MERGED
    assert [one.path for one in down.conflicts] == [path]
    told = [content["text"] for kind, content in rig.rows("child") if kind == "mail"][-1]
    assert f"These conflict and can have no markers: {path}." in told
    assert f"No markers are possible in {path}: the tree of child has one version" in said(rig, down)
    assert merging.merge(here(rig), rig.agent("child")).status in (MergeStatus.MERGED, MergeStatus.NOTHING)


def test_a_file_against_a_directory_is_a_conflict(grove: Rig):
    rig = grove
    result = merged(rig, "mkdir thing && echo x > thing/in", "echo file > thing")
    assert result.status is MergeStatus.CONFLICTS
    assert (rig.workdir / "thing").read_text() == "file\n"


def test_an_ignored_file_of_the_user_is_never_overwritten(grove: Rig):
    rig = grove
    result = merged(rig, "sed -i /env/d .gitignore && echo CHILD=1 > .env")
    assert (result.status, result.differs) == (MergeStatus.CHANGED, (".env",))
    assert said(rig, result).startswith("Nothing was merged. In the way is what no snapshot has, for example because")
    assert rig.one("select reason from agentmesh.merges") == "in the way: .env"
    assert (rig.workdir / ".env").read_text() == "SECRET=1\n"
    assert ".env" in (rig.workdir / ".gitignore").read_text()


def test_a_file_that_a_sparse_checkout_leaves_out_is_named_as_such(grove: Rig):
    rig = grove
    write(rig.workdir, {"out/b": "b\n"})
    git(rig.workdir, "add", "out/b")
    git(rig.workdir, "commit", "-qm", "out")
    git(rig.workdir, "sparse-checkout", "set", "src")
    result = merged(rig, "echo changed > out/b; echo x > src/new")
    assert (result.status, result.differs, result.absent) == (MergeStatus.CHANGED, ("out/b",), ("out/b",))
    assert said(rig, result).startswith("Nothing was merged. Your sparse checkout leaves out out/b.")
    assert rig.one("select reason from agentmesh.merges") == "left out by a sparse checkout: out/b"
    git(rig.workdir, "sparse-checkout", "add", "out")
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED
    assert (rig.workdir / "out/b").read_text() == "changed\n"


def test_a_file_too_large_for_snapshots_is_left_out_and_told(grove: Rig):
    rig = grove
    with_child(
        rig,
        call("bash", command="head -c 5000 /dev/zero > large; echo x > small"),
        workspace=Settings(max_file=4096),
    )
    among = here(rig)
    among.folders._max_file = 4096
    result = merging.merge(among, rig.agent("child"))
    assert (result.status, result.left_out) == (MergeStatus.MERGED, ("large",))
    assert (rig.workdir / "small").exists()
    assert not (rig.workdir / "large").exists()


def test_a_session_in_a_folder_of_its_repository_merges_below_it_and_beside_it(grove: Rig):
    rig = grove
    rig.workdir = rig.workdir / "src"
    rig.root = rig.session()
    with_child(rig, edit("b.py", "b = 2\n"), call("bash", command="echo up > ../up.txt"))
    assert tree_of(rig, "child").name == "src"
    result = merging.merge(here(rig), rig.agent("child"))
    assert result.status is MergeStatus.MERGED
    assert {one.path for one in result.files} == {"b.py", "../up.txt"}
    assert (rig.workdir / "b.py").read_text() == "b = 2\n"
    assert Path(rig.workdir, "../up.txt").read_text() == "up\n"
