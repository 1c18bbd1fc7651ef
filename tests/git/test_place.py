from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.domain.errors import NoRepository, TreeError
from agentmesh.git.place import find, own_place
from tests.git.repositories import Repository, Workspace


def refusal(root: Path) -> str:
    with pytest.raises(NoRepository) as caught:
        find(root)
    return f"{caught.value} {caught.value.hint}"


def test_a_directory_without_a_repository_is_told_what_git_init_gives(tmp_path: Path):
    assert "in no Git repository. Run `git init` there" in refusal(tmp_path)


def test_a_bare_repository_is_refused(tmp_path: Path):
    bare = Repository.init(tmp_path / "bare.git", "--bare")
    assert "bare" in refusal(bare.top)
    assert "bare" in refusal(bare.top / "objects") or "in no Git repository" in refusal(bare.top / "objects")


def test_the_inside_of_dot_git_is_refused(repository: Repository):
    assert "part of one" in refusal(repository.top / ".git" / "objects")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("objectformat", "sha256", "SHA-256"),
        ("refstorage", "reftable", "reftable"),
        ("partialclone", "origin", "partial clone"),
        ("unheardof", "true", "cannot be opened"),
    ],
)
def test_forms_that_libgit2_cannot_read_are_refused_in_words(repository: Repository, name: str, value: str, words: str):
    repository.git("config", "core.repositoryformatversion", "1")
    repository.git("config", f"extensions.{name}", value)
    assert words in refusal(repository.top)


def test_a_sha256_repository_made_by_git_is_refused(tmp_path: Path):
    assert "SHA-256" in refusal(Repository.init(tmp_path / "new", "--object-format=sha256").top)


def test_files_elsewhere_are_refused(repository: Repository, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    repository.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    assert "core.worktree" in refusal(repository.top)


def test_an_ignored_directory_is_refused(repository: Repository):
    repository.write(".gitignore", "build/\n")
    repository.write("build/out", "x")
    assert "ignored" in refusal(repository.top / "build")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's file")
def test_a_repository_of_another_user_is_refused_unless_git_trusts_it(repository: Repository):
    for path in (repository.top, repository.top / ".git"):
        os.chown(path, 12345, 12345)
    assert "safe.directory" in refusal(repository.top)
    repository.git("config", "--global", "--add", "safe.directory", str(repository.top))
    assert find(repository.top).top == repository.top


def test_a_folder_of_a_repository_knows_its_way_in_and_out(repository: Repository):
    place = find(repository.top / "folder")
    assert (place.top, place.prefix) == (repository.top, "folder")
    assert [place.inward(path) for path in ("b.txt", "./x/../b.txt", "../a.txt")] == [
        "folder/b.txt",
        "folder/b.txt",
        "a.txt",
    ]
    assert [place.outward(path) for path in ("folder/b.txt", "a.txt", "n/")] == ["b.txt", "../a.txt", "../n/"]
    for path in ("../../x", "/etc/passwd", "../.."):
        with pytest.raises(TreeError, match="outside the repository"):
            place.inward(path)


def test_a_link_to_the_directory_is_the_same_place(repository: Repository, tmp_path: Path):
    (tmp_path / "link").symlink_to(repository.top)
    assert find(tmp_path / "link") == find(repository.top)


def test_a_git_folder_by_way_of_a_link_is_refused_and_one_that_a_file_names_is_not(
    repository: Repository, tmp_path: Path
):
    (repository.top / ".git").rename(tmp_path / "elsewhere")
    (repository.top / ".git").symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in refusal(repository.top)
    (repository.top / ".git").unlink()
    repository.write(".git", f"gitdir: {tmp_path / 'elsewhere'}\n")
    assert find(repository.top).git_dir == tmp_path / "elsewhere"


def test_a_linked_worktree_shares_the_repository_and_works(repository: Repository, tmp_path: Path):
    repository.git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    linked = Repository(tmp_path / "linked")
    place = find(linked.top)
    assert (place.top, place.common_dir) == (linked.top, repository.top / ".git")
    assert place.git_dir == repository.top / ".git" / "worktrees" / "linked"
    before = repository.state()
    workspace = Workspace.of(linked.top, tmp_path / "trees" / "w")
    workspace.take()
    linked.write("new", "x")
    assert workspace.changed() == {"new": "added"}
    own = workspace.own(tmp_path / "trees" / "own")
    assert (own.root / "new").read_text() == "x"
    assert repository.state() == before


def test_a_submodule_is_a_repository_of_its_own(repository: Repository, tmp_path: Path):
    library = Repository.init(tmp_path / "library")
    library.write("code", "1\n")
    library.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.top), "lib")
    workspace = Workspace.of(repository.top / "lib", tmp_path / "trees" / "w")
    assert workspace.place.common_dir == repository.top / ".git" / "modules" / "lib"
    workspace.take()
    (workspace.root / "code").write_text("2\n")
    assert workspace.changed() == {"code": "changed"}


def test_the_place_of_a_tree_keeps_the_users_repository(repository: Repository, tmp_path: Path):
    place = own_place(find(repository.top / "folder"), tmp_path / "w")
    assert place.root == tmp_path / "w" / "tree" / "folder"
    assert place.top == tmp_path / "w" / "tree"
    assert place.objects == repository.top / ".git" / "objects"
