"""Repositories with a peculiarity: each works, or says in words why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.domain.errors import NoRepository
from tests.git.repositories import Repository, Workspace


def of(repository: Repository, tmp_path: Path) -> Workspace:
    return Workspace.of(repository.top, tmp_path / "trees" / "w")


@pytest.fixture
def with_submodule(repository: Repository, tmp_path: Path) -> Repository:
    library = Repository.init(tmp_path / "library")
    library.write("code", "1\n")
    library.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.top), "lib")
    repository.commit("submodule")
    return repository


def test_a_submodule_stays_as_it_is_and_is_told(with_submodule: Repository, tmp_path: Path):
    workspace = of(with_submodule, tmp_path)
    first = workspace.take()
    assert first.left_out == ("lib/",)
    assert with_submodule.files(first.tree)["lib"][0] == "160000"
    with_submodule.write("lib/code", "2\n")
    with_submodule.write("lib/new", "2\n")
    assert workspace.changed() == {}
    assert workspace.take(paths=["lib/code"]).left_out == ("lib/",)
    own = workspace.own(tmp_path / "trees" / "own")
    assert list((own.root / "lib").iterdir()) == []
    assert own.changed() == {}
    own.root.joinpath("lib", "new").write_text("2\n")
    named = own.take(paths=["lib/new"])
    assert (named.changes, named.left_out) == ((), ("lib/",))
    own.root.joinpath("a.txt").write_text("2\n")
    assert own.changed() == {"a.txt": "changed"}


def test_a_nested_repository_is_left_out_and_told(repository: Repository, tmp_path: Path):
    workspace = of(repository, tmp_path)
    workspace.take()
    nested = Repository.init(repository.top / "deep" / "nested")
    nested.write("file", "x")
    linked = repository.top / "linked"
    repository.git("worktree", "add", "-q", "--detach", str(linked))
    repository.write("beside", "x")
    taken = workspace.take()
    assert [each.path for each in taken.changes] == ["beside"]
    assert taken.left_out == ("deep/nested/", "linked/")
    assert workspace.take(paths=["deep/nested/file"]).left_out == ("deep/nested/",)


def test_files_that_git_filters_are_stored_as_on_disk(repository: Repository, tmp_path: Path):
    repository.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    pointer = tmp_path / "pointer"
    pointer.write_text("#!/bin/sh\ncat > /dev/null\necho pointer\n")
    pointer.chmod(0o755)
    repository.git("config", "filter.lfs.clean", str(pointer))
    repository.write("large.bin", b"real \0 content\r\n")
    repository.commit()
    assert repository.files("HEAD")["large.bin"][1] == b"pointer\n"
    workspace = of(repository, tmp_path)
    assert repository.files(workspace.take().tree)["large.bin"][1] == b"real \0 content\r\n"
    own = workspace.own(tmp_path / "trees" / "own")
    assert (own.root / "large.bin").read_bytes() == b"real \0 content\r\n"
    repository.write("large.bin", b"other\r\n")
    first = workspace.head or ""
    assert workspace.changed() == {"large.bin": "changed"}
    workspace.store.restore(first, workspace.head or "")
    assert (repository.top / "large.bin").read_bytes() == b"real \0 content\r\n"
    assert repository.git("status", "--short") == ""


def test_a_tracked_file_that_git_filters_is_taken_whatever_its_size(repository: Repository, tmp_path: Path):
    repository.write(".gitattributes", "*.psd filter=any -text\n")
    repository.write("big.psd", b"0" * 100)
    repository.commit()
    repository.write("big.psd", b"1" * 100)
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w", max_file=50)
    first = workspace.take()
    assert first.left_out == ()
    assert (workspace.own(tmp_path / "trees" / "own").root / "big.psd").read_bytes() == b"1" * 100
    (repository.top / "big.psd").unlink()
    repository.write("new.psd", b"2" * 100)
    second = workspace.take()
    assert {each.path: each.status for each in second.changes} == {"big.psd": "removed"}
    assert second.left_out == ("new.psd",)
    assert workspace.store.restore(first.tree, second.tree).written == ("big.psd",)
    assert (repository.top / "big.psd").read_bytes() == b"1" * 100


def test_an_encoding_of_the_working_tree_is_kept(repository: Repository, tmp_path: Path):
    repository.write(".gitattributes", "*.utf16 working-tree-encoding=UTF-16LE\n")
    data = "héllo\n".encode("utf-16-le")
    repository.write("x.utf16", data)
    repository.commit()
    assert repository.files("HEAD")["x.utf16"][1] == "héllo\n".encode()
    workspace = of(repository, tmp_path)
    assert repository.files(workspace.take().tree)["x.utf16"][1] == data
    assert (workspace.own(tmp_path / "trees" / "own").root / "x.utf16").read_bytes() == data


ENCODED = "one\r\ntwo\r\n\u0a0d\r\n".encode("utf-16-le")


@pytest.mark.parametrize("settings", ["text working-tree-encoding=UTF-16LE eol=crlf", "filter=any text eol=crlf"])
def test_files_that_git_encodes_or_filters_keep_their_ends_of_lines(
    repository: Repository, tmp_path: Path, settings: str
):
    repository.write(".gitattributes", f"*.ps1 {settings}\n")
    repository.write("x.ps1", ENCODED)
    repository.commit()
    workspace = of(repository, tmp_path)
    first = workspace.take().tree
    assert repository.files(first)["x.ps1"][1] == ENCODED
    own = workspace.own(tmp_path / "trees" / "own")
    assert (own.root / "x.ps1").read_bytes() == ENCODED
    assert own.changed() == {}
    repository.write("x.ps1", b"b\r\n" + ENCODED)
    assert workspace.changed(["x.ps1"]) == {"x.ps1": "changed"}
    assert workspace.changed() == {}
    assert workspace.store.restore(first, workspace.head or "").written == ("x.ps1",)
    assert (repository.top / "x.ps1").read_bytes() == ENCODED
    assert workspace.take().tree == first


def test_a_link_among_files_that_git_encodes_stays_a_link(repository: Repository, tmp_path: Path):
    repository.write(".gitattributes", "* text working-tree-encoding=UTF-16LE eol=crlf\n")
    (repository.top / "link").symlink_to("a.txt")
    workspace = of(repository, tmp_path)
    assert repository.files(workspace.take().tree)["link"] == ("120000", b"a.txt")
    assert (workspace.own(tmp_path / "trees" / "own").root / "link").readlink() == Path("a.txt")


@pytest.mark.parametrize(
    ("attributes", "end"),
    [("* text=auto eol=crlf\n", b"\r\n"), ("*.txt text eol=crlf\n", b"\r\n"), ("*.txt text=auto ident\n", b"\n")],
)
def test_line_ends_are_converted_as_git_does(repository: Repository, tmp_path: Path, attributes: str, end: bytes):
    repository.write(".gitattributes", attributes)
    repository.write("w.txt", "a\r\nb\r\n")
    repository.commit()
    workspace = of(repository, tmp_path)
    repository.write("w.txt", "a\r\nchanged\r\n")
    repository.write("new.txt", "n\r\n")
    tree = workspace.take().tree
    repository.git("add", "-A")
    assert tree == repository.git("write-tree").strip()
    own = workspace.own(tmp_path / "trees" / "own")
    assert own.changed() == {}
    own.root.joinpath("new.txt").write_bytes(b"m\r\n")
    after = own.take().tree
    assert workspace.store.restore(after, tree).written == ("new.txt",)
    assert (repository.top / "new.txt").read_bytes() == b"m" + end
    assert workspace.take().tree == after


@pytest.mark.parametrize("value", ["true", "input"])
def test_autocrlf_of_the_user_is_heeded(repository: Repository, tmp_path: Path, value: str):
    repository.git("config", "core.autocrlf", value)
    workspace = of(repository, tmp_path)
    workspace.take()
    repository.write("new.txt", "a\r\nb\r\n")
    tree = workspace.take().tree
    repository.git("add", "-A")
    assert tree == repository.git("write-tree").strip()
    assert workspace.own(tmp_path / "trees" / "own").changed() == {}


def test_a_strict_check_of_line_ends_hinders_no_snapshot(repository: Repository, tmp_path: Path):
    repository.git("config", "core.autocrlf", "input")
    repository.git("config", "core.safecrlf", "true")
    workspace = of(repository, tmp_path)
    workspace.take()
    repository.write("mixed.txt", "a\r\nb\n")
    assert workspace.changed() == {"mixed.txt": "added"}
    assert workspace.changed(["mixed.txt"]) == {}


def test_a_sparse_checkout_keeps_what_is_not_there(repository: Repository, tmp_path: Path):
    repository.write("other/c.txt", "c\n")
    repository.commit()
    repository.git("sparse-checkout", "set", "folder")
    assert not (repository.top / "other").exists()
    workspace = of(repository, tmp_path)
    assert workspace.take().tree == repository.git("rev-parse", "HEAD^{tree}").strip()
    repository.write("folder/b.txt", "2\n")
    assert workspace.changed() == {"folder/b.txt": "changed"}
    repository.write("other/c.txt", "written all the same\n")
    assert of(repository, tmp_path / "again").take().tree != workspace.head


def test_a_sparse_index_is_refused_in_words(repository: Repository, tmp_path: Path):
    repository.write("other/c.txt", "c\n")
    repository.commit()
    repository.git("sparse-checkout", "set", "--cone", "--sparse-index", "folder")
    with pytest.raises(NoRepository, match="sparse index") as caught:
        of(repository, tmp_path).take()
    repository.git(*caught.value.hint.split("`")[1].split()[1:])
    of(repository, tmp_path).take()


def test_a_split_index_is_read_by_way_of_head(repository: Repository, tmp_path: Path):
    repository.git("update-index", "--split-index")
    repository.write("a.txt", "2\n")
    tree = of(repository, tmp_path).take().tree
    repository.git("add", "-A")
    assert tree == repository.git("write-tree").strip()


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index_is_read(repository: Repository, tmp_path: Path, version: str):
    for name in ("folder/" + "long/" * 80, "folder/bb", "zz"):
        repository.write(name, name)
    repository.commit()
    repository.git("update-index", "--index-version", version)
    repository.git("update-index", "--assume-unchanged", "a.txt")
    repository.git("update-index", "--skip-worktree", "zz")
    workspace = of(repository, tmp_path)
    assert workspace.take().tree == repository.git("rev-parse", "HEAD^{tree}").strip()
    repository.write("a.txt", "hidden from git\n")
    repository.write("zz", "hidden too\n")
    assert repository.git("status", "--short") == ""
    assert workspace.changed() == {"a.txt": "changed", "zz": "changed"}


def test_a_file_system_without_modes(repository: Repository, tmp_path: Path):
    repository.write("run", "#!/bin/sh\n", program=True)
    repository.commit()
    repository.git("config", "core.filemode", "false")
    workspace = of(repository, tmp_path)
    first = workspace.take().tree
    (repository.top / "run").chmod(0o644)
    assert workspace.changed() == {}
    repository.write("run", "2\n")
    assert workspace.changed(["run"]) == {"run": "changed"}
    assert repository.files(workspace.head or "")["run"][0] == "100755"
    assert workspace.store.restore(first, workspace.head or "").refused == ()


def test_a_repository_that_ignores_case(repository: Repository, tmp_path: Path):
    repository.git("config", "core.ignorecase", "true")
    workspace = of(repository, tmp_path)
    workspace.take()
    repository.write("A.txt", "another file on this file system\n")
    taken = workspace.take()
    assert (repository.top / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert repository.files(taken.tree)["a.txt"][1] == b"one\ntwo\nthree\n"
