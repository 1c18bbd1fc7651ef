"""Random merges of moved and edited files: each line that one side added is in the result with its conflicts."""

from __future__ import annotations

import random

import pygit2
import pytest

from agentmesh.git.merging import merge
from agentmesh.git.opening import repository_of
from agentmesh.git.tree_objects import EMPTY, FILE, Entry, edited, files
from tests.git.repositories import Workspace

MERGES = 150
PATHS = ("d", "d/x", "d/y", "d/e", "d/e/x", "f", "f/x", "g", "h/x")
Texts = dict[str, str]
"""Texts by path. No path is a folder of another."""


def put(texts: Texts, path: str, text: str) -> None:
    """Put a file at a path, whatever is in its way."""
    for each in [each for each in texts if each.startswith(f"{path}/") or path.startswith(f"{each}/")]:
        del texts[each]
    texts[path] = text


def begun(chosen: random.Random) -> Texts:
    """Return some files, whose lines are enough for libgit2 to take one for another that was renamed."""
    texts: Texts = {}
    for path in chosen.sample(PATHS, 5):
        put(texts, path, "".join(f"{path} {n}\n" for n in range(12)))
    return texts


def changed(chosen: random.Random, base: Texts, name: str) -> tuple[Texts, set[str]]:
    """Return the files after some edits of one side, and the lines that it added."""
    texts = dict(base)
    for n in range(chosen.randint(1, 5)):
        path, other = chosen.choice(sorted(texts) or ["d"]), chosen.choice(PATHS)
        kind = chosen.choice(["edit", "edit", "add", "move", "move", "remove"])
        line = f"line {n} of {name}\n"
        if kind == "edit":
            lines = texts.get(path, "").splitlines(keepends=True)
            lines.insert(chosen.randint(0, len(lines)), line)
            put(texts, path, "".join(lines))
        elif kind == "add":
            put(texts, other, line)
        elif kind == "move" and path in texts:
            put(texts, other, texts.pop(path))
        else:
            texts.pop(path, None)
    text = "".join(texts.values())
    return texts, {line for n in range(5) if (line := f"line {n} of {name}\n") in text}


def stored(repository: pygit2.Repository, texts: Texts) -> str:
    """Write a tree with these files."""
    entries = {path: Entry(FILE, repository.create_blob(text.encode()).raw) for path, text in texts.items()}
    return edited(repository, EMPTY, entries)


def text_of(repository: pygit2.Repository, tree: str | None) -> str:
    """Return the texts of all files of a tree."""
    assert tree is not None
    blobs = (repository[pygit2.Oid(raw=entry.id)] for _, entry in files(repository, tree))
    return "".join(blob.peel(pygit2.Blob).data.decode() for blob in blobs)


@pytest.mark.parametrize("seed", range(2))
def test_no_line_that_one_side_added_is_lost(workspace: Workspace, seed: int):
    chosen, repository = random.Random(seed), repository_of(workspace.place)
    for n in range(MERGES):
        base = begun(chosen)
        (ours, mine), (theirs, other) = (changed(chosen, base, name) for name in ("ours", "theirs"))
        trees = [stored(repository, each) for each in (base, ours, theirs)]
        merged = merge(workspace.place, *trees, markers=True)
        found = text_of(repository, merged.tree)
        lost = {line for line in mine | other if line not in found}
        assert not lost, (n, sorted(base), ours, theirs, merged.conflicts)
