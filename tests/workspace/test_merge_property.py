"""Random edits of three agents in trees of their own, merged in random order: no line is lost, and none doubled."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from agentmesh.workspace import merging
from agentmesh.workspace.results import MergeStatus
from agentmesh.workspace.workspaces import Workspaces
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git, write
from tests.workspace.conftest import here, own, tree_of

pytestmark = pytest.mark.timeout(300)

NAMES = ("one", "two", "three")
FILES = ("a.txt", "deep/b.txt", "c.txt")
ROUNDS = 4


def planted(rig: Rig) -> dict[str, Path]:
    """Return the trees of three agents that have all changed nothing yet."""
    write(rig.workdir, {path: "".join(f"{path} {n}\n" for n in range(20)) for path in FILES})
    rig.script("root", do(*(own(name) for name in NAMES)), say("forked"))
    for name in NAMES:
        rig.script(name, do(call("bash", command="true")), say("ready"))
    rig.worker()
    rig.run()
    return {name: tree_of(rig, name) for name in NAMES}


def added(chosen: random.Random, tree: Path, name: str, turn: int) -> set[str]:
    """Add lines of the agent's own at random places of random files, also of a new one; return them."""
    lines: set[str] = set()
    for n in range(chosen.randint(1, 4)):
        path = tree / chosen.choice([*FILES, f"{name}.txt"])
        old = path.read_text().splitlines() if path.exists() else []
        line = f"{name} {turn}.{n}"
        old.insert(chosen.randint(0, len(old)), line)
        path.write_text("".join(f"{each}\n" for each in old))
        lines.add(line)
    return lines


def solved(tree: Path) -> None:
    """Keep both sides of every conflict."""
    for path in tree.rglob("*.txt"):
        lines = path.read_text().splitlines()
        kept = [line for line in lines if not line.startswith(("<<<<<<< ", "=======", ">>>>>>> "))]
        path.write_text("".join(f"{line}\n" for line in kept))


def by_git(repository: Path, base: str, ours: str, theirs: str) -> str | None:
    """Return what the git program makes of three trees; None if there are conflicts."""
    root = git(repository, "commit-tree", "-m", "x", base)
    sides = [git(repository, "commit-tree", "-m", "x", "-p", root, tree) for tree in (ours, theirs)]
    said = git(repository, "merge-tree", "--write-tree", *sides, check=False).splitlines()
    return said[0] if len(said) == 1 else None


def merge_in(rig: Rig, among: Workspaces, name: str, tree: Path) -> None:
    """Merge an agent's files; on a conflict bring the others' down, solve it, and merge again."""
    agent = rig.agent(name)
    result = merging.merge(among, agent)
    if result.status is MergeStatus.CONFLICTS:
        assert merging.merge(among, agent, down=True).status is MergeStatus.MERGED
        solved(tree)
        result = merging.merge(among, agent)
    assert result.status is MergeStatus.MERGED, result
    newest = "select base, ours, theirs, result from agentmesh.merges where id = %s"
    base, ours, theirs, made = rig.conn.execute(newest, [result.id]).fetchone() or ("", "", "", "")
    assert by_git(rig.workdir, base, ours, theirs) == made, "the git program makes the same of it"


@pytest.mark.parametrize("seed", range(3))
def test_every_line_that_one_agent_added_is_there_once(grove: Rig, seed: int):
    rig, chosen = grove, random.Random(seed)
    trees, among = planted(rig), here(rig)
    expected = Counter(line for path in FILES for line in (rig.workdir / path).read_text().splitlines())
    for turn in range(ROUNDS):
        for name in NAMES:
            expected.update(added(chosen, trees[name], name, turn))
        for name in chosen.sample(NAMES, len(NAMES)):
            merge_in(rig, among, name, trees[name])
        for name in NAMES:
            merging.merge(among, rig.agent(name), down=True)
    found: Counter[str] = Counter()
    for path in (*FILES, *(f"{name}.txt" for name in NAMES)):
        if (rig.workdir / path).exists():
            found.update((rig.workdir / path).read_text().splitlines())
    assert found == expected
