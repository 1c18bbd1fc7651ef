"""Pipes where files should be: nobody writes to them, so an open that waits would wait for ever."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import ConfigLevel

from agentmesh.domain.errors import NoRepository, TreeError
from agentmesh.git import comparing, merging, withheld
from agentmesh.git.place import find
from agentmesh.git.rule_files import read_regular
from agentmesh.tools.shell.judge import read_shell
from tests.git.repositories import Repository, Workspace

pytestmark = pytest.mark.timeout(20)
RULES = [".gitignore", ".gitattributes", "folder/.gitignore", "new/deep/.gitattributes"]
FIXED = [
    "HEAD",
    "commondir",
    "config",
    "index",
    "info/attributes",
    "info/exclude",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
]
USERS = [".gitconfig", "config", "ignore", "attributes"]
FIRST = "refs/agentmesh/s/a/1"


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


@pytest.mark.parametrize("path", FIXED)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_pipe_among_the_files_of_a_repository_is_refused_in_words(
    repository: Repository, workspace: Workspace, path: str, first: bool
):
    if not first:
        workspace.take()
        repository.write("a.txt", "changed\n")
    (repository.top / ".git" / path).unlink(missing_ok=True)
    made = pipe(repository, f".git/{path}")
    refused = at_once(workspace.take)
    assert f".git/{path} is a pipe" in refused.message
    assert refused.hint == "Remove it."
    made.unlink()


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_once_the_pipe_is_gone_snapshots_are_taken_again(repository: Repository, workspace: Workspace, first: bool):
    if not first:
        workspace.take()
    exclude = repository.top / ".git" / "info" / "exclude"
    exclude.unlink(missing_ok=True)
    made = pipe(repository, ".git/info/exclude")
    at_once(workspace.take)
    made.unlink()
    exclude.write_text("*.o\n")
    repository.write("new.txt", "new\n")
    repository.write("new.o", "new\n")
    files = repository.files(workspace.take().tree)
    assert "new.txt" in files
    assert "new.o" not in files


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_pipe_among_the_users_settings_is_refused_in_words(
    repository: Repository, workspace: Workspace, tmp_path: Path, name: str, first: bool
):
    pygit2.settings.search_path[ConfigLevel.XDG] = str(tmp_path / "home" / "git")  # the fixture puts it back
    if not first:
        workspace.take()
        repository.write("a.txt", "changed\n")
    made = tmp_path / "home" / (name if name == ".gitconfig" else f"git/{name}")
    made.parent.mkdir(exist_ok=True)
    os.mkfifo(made)
    assert at_once(workspace.take).message.startswith(f"{made} is a pipe")


@pytest.mark.parametrize("key", ["core.excludesFile", "core.attributesFile"])
def test_a_pipe_that_a_setting_names_is_one_too(repository: Repository, workspace: Workspace, tmp_path: Path, key: str):
    workspace.take()
    os.mkfifo(tmp_path / "pipe")
    repository.git("config", key, str(tmp_path / "pipe"))
    repository.write("a.txt", "changed\n")
    assert at_once(workspace.take).message.startswith(f"{tmp_path / 'pipe'} is a pipe")


def test_a_pipe_in_a_linked_worktree_or_in_what_it_shares_is_refused(repository: Repository, tmp_path: Path):
    repository.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Workspace.of(tmp_path / "linked", tmp_path / "trees" / "linked")
    linked.take()
    for path in (linked.place.git_dir / "config.worktree", linked.place.common_dir / "info" / "exclude"):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        assert at_once(linked.take).message.startswith(f"{path} is a pipe")
        path.unlink()


@pytest.mark.parametrize("path", [".git/config", ".git/HEAD", ".git/info/exclude", ".git/commondir", ".git"])
def test_a_directory_with_one_is_none_to_start_in(repository: Repository, path: str):
    if path == ".git":
        (repository.top / path).rename(repository.top / "moved")
    else:
        (repository.top / path).unlink(missing_ok=True)
    pipe(repository, path)
    refused = at_once(lambda: find(repository.top))
    assert isinstance(refused, NoRepository)
    assert f"{path} is a pipe" in refused.message


@pytest.mark.parametrize("path", [".git/info/attributes", ".gitattributes", "folder/.gitattributes"])
@pytest.mark.parametrize("what", ["restore", "diff", "changes", "merge", "conflicts"])
def test_every_use_of_snapshots_refuses_it(repository: Repository, workspace: Workspace, path: str, what: str):
    one, two, three = _versions(repository, workspace)
    pipe(repository, path)
    place = workspace.place
    uses: dict[str, Callable[[], object]] = {
        "restore": lambda: workspace.store.restore(one, three),
        "diff": lambda: comparing.diff(place, one, two),
        "changes": lambda: comparing.changes(place, one, two),
        "merge": lambda: merging.merge(place, one, two, three),
        "conflicts": lambda: merging.conflicts(place, one, two, three),
    }
    assert f"{path} is a pipe" in at_once(uses[what]).message


def test_a_pipe_in_the_place_of_a_ref_is_refused(repository: Repository, workspace: Workspace):
    tree = workspace.take(FIRST).tree
    ref = repository.top / ".git" / FIRST
    ref.unlink()
    os.mkfifo(ref)
    for use in (lambda: workspace.store.keep(FIRST, tree), lambda: workspace.store.free([FIRST])):
        assert f"{FIRST} is a pipe" in at_once(use).message
    assert workspace.store.refs("refs/agentmesh/") == {}


@pytest.mark.parametrize("path", ["HEAD", "config", "index", "commondir", "objects/info/alternates"])
def test_neither_a_git_command_nor_what_git_has_of_withheld_files_is_judged_by_one(repository: Repository, path: str):
    (repository.top / ".git" / path).unlink(missing_ok=True)
    pipe(repository, f".git/{path}")
    found: list[object] = []

    def judge() -> None:
        found.append(withheld.known(repository.top, lambda _: False, []))
        found.append([part.read_only for part in read_shell("git status", repository.top).parts])

    _in_time(judge)
    assert found[0] == ".git"
    if path != "HEAD":  # nobody reads that one to judge a command
        assert found[1] == [False]


def _versions(repository: Repository, workspace: Workspace) -> tuple[str, str, str]:
    """Return three snapshots; the later two have each changed the same files."""
    one = workspace.take().tree
    repository.write("a.txt", "two\n")
    repository.write("folder/b.txt", "two\n")
    two = workspace.take().tree
    repository.write("a.txt", "three\n")
    repository.write("folder/b.txt", "three\n")
    return one, two, workspace.take().tree


def at_once(use: Callable[[], object]) -> TreeError:
    """Return how a use is refused. One that waits for ever fails the test, and not the whole run."""
    refused: list[TreeError] = []

    def run() -> None:
        try:
            use()
        except TreeError as error:
            refused.append(error)

    _in_time(run)
    assert refused, "it was not refused"
    return refused[0]


def _in_time(use: Callable[[], object]) -> None:
    thread = threading.Thread(target=use, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it waits for ever"


def _age(*folders: Path) -> None:
    """Let folders look as if they had not changed for an hour."""
    for folder in folders:
        os.utime(folder, (time.time() - 3600,) * 2)
