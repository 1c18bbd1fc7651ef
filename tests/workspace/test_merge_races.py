"""A merge races with another merge, a step, a person and a kill. Locks and hooks force who comes first."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import TreeError
from agentmesh.git.folders import Folders
from agentmesh.store import agents
from agentmesh.workspace import merging
from agentmesh.workspace.applying import finish_left
from agentmesh.workspace.merging import MergeTerms
from agentmesh.workspace.results import Checked, MergeResult, MergeStatus
from agentmesh.workspace.sweep import sweep
from agentmesh.workspace.workspaces import Workspaces
from tests.fixtures.engine import Rig, call, do, once, say
from tests.fixtures.repositories import write
from tests.fixtures.worker_process import HOST, USER, WatchedDatabase
from tests.workspace.conftest import edit, here, idle, own, tree_of, with_child

pytestmark = pytest.mark.timeout(120)


class Meanwhile:
    """A merge on a thread of its own."""

    def __init__(self, work: Callable[[], MergeResult]) -> None:
        self._done: list[MergeResult] = []
        self.thread = threading.Thread(target=lambda: self._done.append(work()), daemon=True)
        self.thread.start()

    def result(self) -> MergeResult:
        self.thread.join(60)
        return self._done[0]


def two_children(rig: Rig) -> None:
    rig.script("root", do(own("one"), own("two")), say("forked"))
    for name in ("one", "two"):
        rig.script(name, do(edit(f"{name}.txt", f"{name}\n")), say("changed"))
    rig.worker()
    rig.run()


def test_two_merges_into_one_directory_come_one_after_the_other(grove: Rig):
    rig = grove
    two_children(rig)
    blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    with psycopg.connect(rig.url) as holder:
        holder.execute("select from agentmesh.workspaces where kind = 'shared' for no key update")
        first = Meanwhile(lambda: merging.merge(here(rig), rig.agent("one")))
        rig.until(lambda: rig.one(blocked), "the first one's wait for the row")
        second = Meanwhile(lambda: merging.merge(here(rig), rig.agent("two")))
        assert second.thread.is_alive()
        holder.commit()
    assert first.result().status is MergeStatus.MERGED
    assert second.result().status is MergeStatus.MERGED
    assert (rig.workdir / "one.txt").exists()
    assert (rig.workdir / "two.txt").exists()
    assert rig.one("select count(*) from agentmesh.merges where state = 'done'") == 2


def test_what_a_step_changes_while_the_check_runs_is_checked_too(grove: Rig):
    rig = grove
    with_child(rig, edit("made.txt", "made\n"), then=[do(edit("meanwhile.txt", "x\n")), say("more")])
    seen: list[bool] = []

    def check(folder: Path, _cancel: Cancel) -> Checked:
        seen.append((folder / "meanwhile.txt").exists())
        if len(seen) == 1:
            rig.run("go on")
        return Checked("make test", 0, "")

    assert merging.merge(here(rig), rig.agent("child"), terms=MergeTerms(check=check)).status is MergeStatus.MERGED
    assert seen == [False, True]
    assert (rig.workdir / "meanwhile.txt").exists()
    assert (rig.workdir / "made.txt").exists()


def hooked(rig: Rig, when: str, name: str, act: Callable[[], None]) -> Workspaces:
    """Return workspaces whose database does this once, at a moment of its calls."""
    database = WatchedDatabase(rig.url, role="test")
    rig._closers.append(database.close)
    left = [act]

    def hook(now: str, called: str) -> None:
        if (now, called) == (when, name) and left:
            left.pop()()

    database.hook = hook
    return Workspaces(database, rig.data_dir, host=HOST, os_user=USER)


def test_a_file_that_a_person_changes_after_the_look_is_not_overwritten(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"), edit("made.txt", "made\n"))
    among = hooked(rig, "before", "begin", lambda: write(rig.workdir, {"a.txt": "of the user\n"}))
    result = merging.merge(among, rig.agent("child"))
    assert (result.status, result.differs) == (MergeStatus.CHANGED, ("a.txt",))
    assert (rig.workdir / "a.txt").read_text() == "of the user\n"
    assert not (rig.workdir / "made.txt").exists()
    assert rig.one("select state from agentmesh.merges") == "refused"


def test_a_merge_that_could_not_be_written_is_over(grove: Rig, monkeypatch):
    rig = grove
    with_child(rig, edit("made.txt", "made\n"))

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), ".made.txt.agentmesh")

    with monkeypatch.context() as patched:
        patched.setattr(Folders, "create", refused)
        with pytest.raises(TreeError, match=r"Permission denied: made\.txt") as failed:
            merging.merge(here(rig), rig.agent("child"))
    assert failed.value.hint == "Make that writable, then try again: nothing was changed."
    assert rig.conn.execute("select state, reason from agentmesh.merges").fetchall() == [
        ("refused", "not written: agentmesh could not write files: Permission denied: made.txt.")
    ]
    assert finish_left(here(rig)) == []
    assert not (rig.workdir / "made.txt").exists()
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED


def test_a_source_that_is_killed_while_it_is_checked_is_merged_all_the_same(grove: Rig):
    rig = grove
    with_child(rig, edit("made.txt", "made\n"))
    child = rig.agent("child")

    def check(_folder: Path, _cancel: Cancel) -> Checked:
        rig.kill("child")
        return Checked("make test", 0, "")

    assert merging.merge(here(rig), child, terms=MergeTerms(check=check)).status is MergeStatus.MERGED
    assert (rig.workdir / "made.txt").exists()


def swept(rig: Rig, tree: Path) -> bool:
    """Sweep, and return whether this tree is gone; its agent's worker may have to leave it first."""
    sweep(here(rig))
    return not tree.exists()


def test_a_source_whose_tree_is_removed_while_it_is_checked_is_merged_all_the_same(grove: Rig):
    rig = grove
    with_child(rig, edit("made.txt", "made\n"), edit("more.txt", "more\n"))
    child = rig.agent("child")
    tree = tree_of(rig, "child")

    def check(_folder: Path, _cancel: Cancel) -> Checked:
        rig.kill("child")
        rig.until(lambda: swept(rig, tree), "the end of the tree")
        return Checked("make test", 0, "")

    assert merging.merge(here(rig), child, terms=MergeTerms(check=check)).status is MergeStatus.MERGED
    assert (rig.workdir / "made.txt").exists()
    assert not tree.parent.exists()


def test_a_caller_that_is_killed_while_files_are_written_leaves_a_whole_merge(grove: Rig):
    rig = grove
    rig.script("root", do(own("child")), say("forked"))
    rig.script("child", do(own("grand")), once(idle(rig, "grand"), do(call("merge", agent="grand"))), say("merged"))
    rig.script("grand", do(edit("deep.txt", "x\n")), say("done"))
    killed = threading.Event()

    def hook(when: str, name: str) -> None:
        if (when, name) == ("before", "end") and not killed.is_set():
            killed.set()
            rig.db.run(agents.kill, rig.agent("child"))

    rig.worker(hook=hook)
    rig.prompt()
    assert killed.wait(30)
    rig.rest()
    rig.until(lambda: rig.one("select true from agentmesh.merges where state = 'done'"), "the end of the merge")
    assert rig.status("child") == "dead"
