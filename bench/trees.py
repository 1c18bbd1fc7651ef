"""P28 to P30: snapshots of a directory, trees of agents' own, and conflicts between them, without the database."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from agentmesh.git.merging import conflicts
from agentmesh.git.place import Place, find
from agentmesh.git.store import Store
from agentmesh.git.trees import make_tree, remove_tree
from bench import trees_step
from bench.harness import Bench, Figure, Target, Values

_SMALL: Final = 1_000
_LARGE: Final = 10_000
_LARGEST: Final = 100_000
"""In the long form: it takes ten seconds to make."""
_AGENTS: Final = 20
_TEXT: Final = "".join(f"line {number} of a file that somebody works on\n" for number in range(30))
_GIT: Final = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org")


def run(bench: Bench) -> None:
    """Measure P28, P29 and P30."""
    with tempfile.TemporaryDirectory(dir=bench.place.folder) as folder:
        small = _repository(Path(folder) / "small", _SMALL)
        files = bench.size(_LARGE, _SMALL, _LARGEST)
        large = _repository(Path(folder) / "large", files)
        _snapshots(bench, small, Path(folder) / "of-small", _SMALL, 10)
        _snapshots(bench, large, Path(folder) / "of-large", files, 100)
        trees_step.run(bench, small.top, Path(folder) / "step")
        _trees(bench, small, Path(folder) / "trees")
        _conflicts(bench, small, Path(folder) / "pairs")


def _snapshots(bench: Bench, place: Place, folder: Path, files: int, limit: float) -> None:
    """Measure what a snapshot adds to a step: of files that edit and write name, and after a command."""
    figure = Figure(
        f"P28 {files:,}",
        f"snapshot after a step that changed 3 files, in a repository of {files:,} files",
        {"edit and write p50": "ms", "bash p50": "ms", "git, four processes": "ms", "bash / git": "x"},
        [Target("edit and write p50", "<=", limit), Target("bash / git", "<=", 1)],
        note="edit and write say which files they changed; after bash every file is looked at, which costs git the same"
        " calls of the system, so it is measured against git (decision 0041). All of it comes on top"
        " of the step. Beside it what git does for the same tree: copy the index, add, write-tree, update-ref.",
    )
    store = Store(place, folder)
    head = store.take(None, "refs/agentmesh/bench/a/0").tree

    def repeat() -> Values:
        nonlocal head
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(bench.size(15, 3, 40)):
            for named in (True, False):
                paths = _changed(place, f"{time.perf_counter_ns()} {number}\n")
                began = time.perf_counter()
                head = store.take(head, "refs/agentmesh/bench/a/1", paths if named else None).tree
                times[named].append((time.perf_counter() - began) * 1e3)
        after_bash, by_git = (
            statistics.median(times[False]),
            statistics.median(_by_git(place, folder) for _ in range(3)),
        )
        return {
            "edit and write p50": statistics.median(times[True]),
            "bash p50": after_bash,
            "git, four processes": by_git,
            "bash / git": after_bash / by_git,
        }

    bench.measure(repeat, figure)


def _trees(bench: Bench, place: Place, trees: Path) -> None:
    """Measure the making of an agent's own tree."""
    figure = Figure(
        "P29",
        f"a working tree for a fork, of {_SMALL:,} files",
        {"make a tree": "ms", "git worktree add": "ms"},
        [Target("make a tree", "<=", 150)],
        note="Snapshot of the parent's files included. `git worktree add` makes the files of a commit.",
    )
    store = Store(place, trees / "parent")
    head = store.take(None, "refs/agentmesh/bench/b/0").tree
    numbers = itertools.count()

    def make() -> None:
        nonlocal head
        name = f"own{next(numbers)}"
        head = store.take(head, "refs/agentmesh/bench/b/1").tree
        make_tree(place, head, trees / name, name)

    def add() -> None:
        _git(place, "worktree", "add", "-q", "--detach", os.fspath(trees / f"added{next(numbers)}"))

    def repeat() -> Values:
        times = [(_timed(make), _timed(add)) for _ in range(bench.size(7, 2, 15))]
        for name in os.listdir(trees):
            if name.startswith("own"):
                remove_tree(trees / name, name, trees)
            elif name.startswith("added"):
                shutil.rmtree(trees / name)
        _git(place, "worktree", "prune")
        return {
            "make a tree": statistics.median(ours for ours, _ in times),
            "git worktree add": statistics.median(others for _, others in times),
        }

    bench.measure(repeat, figure)


def _conflicts(bench: Bench, place: Place, folder: Path) -> None:
    """Measure how long it takes to merge every agent's tree with every other's."""
    pairs = _AGENTS * (_AGENTS - 1) // 2
    figure = Figure(
        "P30",
        f"conflicts among {_AGENTS} agents, {pairs} pairs, {_SMALL:,} files",
        {"different files": "ms", "a file in common": "ms", "git merge-tree": "ms"},
        [Target("different files", "<=", 1000), Target("a file in common", "<=", 1000)],
        note="Each agent changed 5 files of its own; in the second column also one that all changed, in other lines.",
    )
    store = Store(place, folder)
    base = store.take(None, "refs/agentmesh/bench/c/0").tree
    apart = [_agent(place, store, base, number, together=False) for number in range(_AGENTS)]
    met = [_agent(place, store, base, number, together=True) for number in range(_AGENTS)]

    def all_pairs(trees: Sequence[str]) -> None:
        for one, other in itertools.combinations(trees, 2):
            conflicts(place, base, one, other)

    commits = [_commit(place, tree, [_commit(place, base, [])]) for tree in met]

    def by_git() -> None:
        for one, other in itertools.combinations(commits, 2):
            _git(place, "merge-tree", "--write-tree", one, other, check=False)

    def repeat() -> Values:
        return {
            "different files": _timed(lambda: all_pairs(apart)),
            "a file in common": _timed(lambda: all_pairs(met)),
            "git merge-tree": _timed(by_git),
        }

    bench.measure(repeat, figure)


def _repository(top: Path, files: int) -> Place:
    """Make a repository with so many files, 50 in a folder, in one commit."""
    for number in range(files):
        if number % 50 == 0:
            (top / _path(number)).parent.mkdir(parents=True)
        (top / _path(number)).write_text(f"{number % 100}\n{_TEXT}")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "bench"), ("gc", "-q"), ("status",)):
        subprocess.run([*_GIT, *arguments], cwd=top, check=True, stdout=subprocess.DEVNULL)
    return find(top)


def _path(number: int) -> str:
    return f"d{number // 5000:02}/d{number // 50 % 100:02}/file{number:06}.txt"


def _changed(place: Place, text: str) -> list[str]:
    """Change three files in three folders; return their paths."""
    paths = [_path(number) for number in (10, 400, 900)]
    for path in paths:
        (place.top / path).write_text(text + _TEXT)
    return paths


def _agent(place: Place, store: Store, base: str, number: int, *, together: bool) -> str:
    """Return the tree of an agent that changed some files; they are as in the base again afterwards."""
    paths = [_path(number * 30 + each) for each in range(5)]
    for path in paths:
        (place.top / path).write_text(f"agent {number}\n{_TEXT}")
    if together:
        lines = _TEXT.splitlines(keepends=True)
        lines[number] = f"agent {number} was here\n"
        (place.top / _path(999)).write_text("99\n" + "".join(lines))
        paths.append(_path(999))
    tree = store.take(base, f"refs/agentmesh/bench/c/{number}{together:d}", paths).tree
    store.restore(base, tree)
    return tree


def _by_git(place: Place, folder: Path) -> float:
    """Return the milliseconds of a snapshot by the git program, of the three files changed once more."""
    index = folder / "by-git"
    if not index.exists():
        shutil.copy2(place.git_dir / "index", index)
    _changed(place, f"{time.perf_counter_ns()} by git\n")
    environment = {**os.environ, "GIT_INDEX_FILE": os.fspath(index)}

    def take() -> None:
        _git(place, "add", "-A", environment=environment)
        tree = _git(place, "write-tree", environment=environment)
        _git(place, "update-ref", "refs/agentmesh/bench/git/1", tree)
        _git(place, "diff-tree", "-r", "--numstat", "HEAD", tree)

    return _timed(take)


def _commit(place: Place, tree: str, parents: Sequence[str]) -> str:
    options = [each for parent in parents for each in ("-p", parent)]
    return _git(place, "commit-tree", tree, *options, "-m", "bench")


def _git(place: Place, *arguments: str, check: bool = True, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [*_GIT, *arguments], cwd=place.top, check=check, env=environment, capture_output=True, text=True
    )
    return done.stdout.strip()


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3
