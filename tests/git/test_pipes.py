"""Pipes where files should be: nobody writes to them, so an open that waits would wait for ever."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agentmesh.domain.errors import TreeError
from agentmesh.git.rule_files import read_regular
from tests.git.repositories import Repository, Workspace

pytestmark = pytest.mark.timeout(20)
RULES = [".gitignore", ".gitattributes", "folder/.gitignore", "new/deep/.gitattributes"]


def pipe(repository: Repository, path: str) -> Path:
    full = repository.top / path
    full.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(full)
    return full


@pytest.mark.parametrize("path", RULES)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_pipe_that_git_would_read_rules_from_is_refused_in_words(
    repository: Repository, workspace: Workspace, path: str, first: bool
):
    if not first:
        workspace.take()
        repository.write("a.txt", "changed\n")
    made = pipe(repository, path)
    with pytest.raises(TreeError, match=f"{path} is a pipe"):
        workspace.take()
    made.unlink()
    repository.write(path, "*.o\n")
    assert path in repository.files(workspace.take().tree)


def test_a_link_to_a_pipe_is_one_too(repository: Repository, workspace: Workspace):
    target = pipe(repository, "pipe")
    (repository.top / "folder" / ".gitignore").symlink_to(target)
    with pytest.raises(TreeError, match="is a pipe"):
        workspace.take()


def test_a_link_is_asked_each_time_where_it_leads(repository: Repository, workspace: Workspace, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("*.o\n")
    (repository.top / ".gitattributes").symlink_to(elsewhere)
    _age(repository.top)
    workspace.take()
    elsewhere.unlink()
    os.mkfifo(elsewhere)
    with pytest.raises(TreeError, match="is a pipe"):
        workspace.take()


def test_a_look_at_single_files_refuses_it_on_their_way_only(repository: Repository, workspace: Workspace):
    workspace.take()
    pipe(repository, "folder/.gitignore")
    repository.write("a.txt", "changed\n")
    assert workspace.changed(["a.txt"]) == {"a.txt": "changed"}
    repository.write("folder/b.txt", "changed\n")
    with pytest.raises(TreeError, match="is a pipe"):
        workspace.take(paths=["folder/b.txt"])


def test_a_folder_that_was_known_is_read_again_once_it_changed(repository: Repository, workspace: Workspace):
    _age(repository.top, repository.top / "folder")
    workspace.take()
    workspace.take()
    pipe(repository, "folder/.gitignore")
    with pytest.raises(TreeError, match="is a pipe"):
        workspace.take()


def test_what_is_behind_a_link_or_in_the_repository_is_not_looked_at(
    repository: Repository, workspace: Workspace, tmp_path: Path
):
    (tmp_path / "outside").mkdir()
    os.mkfifo(tmp_path / "outside" / ".gitignore")
    (repository.top / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(repository.top / ".git" / ".gitignore")
    workspace.take()
    assert workspace.changed() == {}


def test_only_a_regular_file_is_read_and_at_once(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"text")
    assert read_regular(tmp_path / "file") == b"text"
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", tmp_path):
        with pytest.raises(OSError, match="no regular file"):
            read_regular(other)


def _age(*folders: Path) -> None:
    """Let folders look as if they had not changed for an hour."""
    for folder in folders:
        os.utime(folder, (time.time() - 3600,) * 2)
