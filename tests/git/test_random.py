"""Random trees: a snapshot brings back every byte, and a merge is the one that git makes."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agentmesh.git.merging import merge
from tests.git.repositories import Repository, Workspace, on_disk

NAMES = st.sampled_from(["a", "b", "c d", "é", "-x", "n\nl", "\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENT = st.one_of(st.binary(max_size=40), st.sampled_from([b"", b"one\n", b"one\r\ntwo\n"]))
Edit = tuple[str, str, bytes]
EDIT = st.tuples(PATHS, st.sampled_from(["write", "program", "link", "remove", "folder"]), CONTENT)
EDITS = st.lists(EDIT, max_size=12)
LINES = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=8)
FILES = st.dictionaries(st.sampled_from(["x", "y", "z/x", "z/y"]), LINES, max_size=4)


def change(top: Path, path: str, kind: str, data: bytes) -> None:
    """Make one edit, whatever is in its way."""
    full = top / path
    above = next((each for each in reversed(full.relative_to(top).parents) if (top / each).is_file()), None)
    if above is not None:
        (top / above).unlink()
    if any((top / each).is_symlink() for each in full.relative_to(top).parents):
        return
    if full.is_symlink() or full.is_file():
        full.unlink()
    elif full.is_dir():
        shutil.rmtree(full)
    if kind == "remove":
        return
    full.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        full.mkdir()
    elif kind == "link":
        full.symlink_to(os.fsdecode(data.replace(b"\0", b"") or b"a"))
    else:
        full.write_bytes(data)
        full.chmod(0o755 if kind == "program" else 0o644)


@settings(max_examples=60)
@given(EDITS, EDITS, EDITS)
def test_a_restore_brings_back_every_byte_and_mode(one: list[Edit], two: list[Edit], three: list[Edit]):
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository.init(Path(folder) / "project")
        workspace = Workspace.of(repository.top, Path(folder) / "trees" / "w")
        states = []
        for edits in (one, two, three):
            for path, kind, data in edits:
                change(repository.top, path, kind, data)
            states.append((workspace.take().tree, on_disk(repository.top)))
        repository.git("add", "-A")
        assert workspace.head == repository.git("write-tree").strip()
        now = workspace.head or ""
        for tree, files in (*reversed(states), *states):
            assert workspace.store.restore(tree, now).refused == ()
            assert on_disk(repository.top) == files
            now = tree
            assert workspace.take().tree == tree


@settings(max_examples=60)
@given(FILES, FILES, FILES)
def test_a_merge_is_the_one_that_git_makes(
    base: dict[str, list[str]], ours: dict[str, list[str]], theirs: dict[str, list[str]]
):
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository.init(Path(folder) / "project")
        workspace = Workspace.of(repository.top, Path(folder) / "trees" / "w")
        trees = []
        commits: list[str] = []
        for files in (base, ours, theirs):
            for path in ("x", "y", "z/x", "z/y"):
                (repository.top / path).unlink(missing_ok=True)
            for path, lines in files.items():
                # Files that have no line in common, so that neither takes one for the other renamed.
                repository.write(path, "".join(f"{path} {line} {'-' * 20}\n" for line in lines))
            trees.append(workspace.take().tree)
            parents = ["-p", commits[0]] if commits else []
            commits.append(repository.git("commit-tree", trees[-1], *parents, "-m", "x").strip())
        merged = merge(workspace.place, *trees)
        by_git = repository.git(
            "-c", "merge.renames=false", "merge-tree", "--write-tree", commits[1], commits[2], check=False
        )
        tree, *rest = by_git.split("\n")
        assert (merged.tree is None) == bool("".join(rest))
        if merged.tree is not None:
            assert merged.tree == tree
