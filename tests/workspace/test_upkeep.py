"""Conflicts while they grow, leases, the sweep, and repair."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from uuid import UUID

import pytest

from agentmesh.config.schema import Workspace as Settings
from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.errors import SessionRunning
from agentmesh.git.unfinished import NOTE
from agentmesh.store import leases, sessions
from agentmesh.store import workspaces as rows
from agentmesh.workspace import merging, repair, sweep
from agentmesh.workspace.deleting import delete_session
from agentmesh.workspace.merging import MergeTerms
from agentmesh.workspace.results import Checked, Fault, MergeStatus
from tests.fixtures.engine import Rig, call, do, once, say, when
from tests.fixtures.repositories import git, write
from tests.fixtures.threads import NoThreads
from tests.workspace.conftest import edit, here, idle, own, tree_of, with_child

pytestmark = pytest.mark.timeout(120)


def faults(rig: Rig) -> list[Fault]:
    return [one.fault for one in repair.look(here(rig))]


# Conflicts


def test_the_second_writer_hears_of_a_conflict_once_and_it_ends_when_the_files_fit_again(grove: Rig):
    rig = grove
    count = "select count(*) from agentmesh.conflicts where over_at is null"
    rig.script("root", do(own("one"), own("two")), say("forked"))
    rig.script("one", do(edit("a.txt", "of one\n")), say("ready"))
    rig.script(
        "two",
        once(idle(rig, "one"), do(edit("a.txt", "of two\n"))),
        once(lambda: rig.one(count), do(call("bash", command="cat a.txt"))),
        do(call("bash", command="cat a.txt")),
        do(edit("a.txt", "of one\n")),
        say("over"),
    )
    rig.worker()
    rig.run()
    notes = [result.get("note", "") for result in rig.results("bash", "two")]
    assert ["one has changed the same places" in note for note in notes] == [False, True, False, False]
    assert rig.one(count) == 0
    assert rig.one("select path from agentmesh.conflicts") == "a.txt"


def test_changes_that_fit_are_no_conflict(grove: Rig):
    rig = grove
    write(rig.workdir, {"list.txt": "".join(f"{n}\n" for n in range(30))})
    rig.script("root", do(own("one"), own("two")), say("forked"))
    rig.script("one", do(call("bash", command="sed -i 's/^3$/three/' list.txt")), say("ready"))
    rig.script("two", once(idle(rig, "one"), do(call("bash", command="sed -i 's/^25$/x/' list.txt"))), say("ready"))
    rig.worker()
    rig.run()
    assert rig.one("select count(*) from agentmesh.conflicts") == 0


# Deleting


def test_a_deleted_session_takes_its_trees_and_refs_with_it(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    session, tree = rig.one("select session_id from agentmesh.agents limit 1"), tree_of(rig, "child")
    git(rig.workdir, "update-ref", "refs/agentmesh/other/kept", git(rig.workdir, "rev-parse", "HEAD^{tree}"))
    before = git(rig.workdir, "status", "--porcelain"), git(rig.workdir, "log", "--all", "--format=%H")
    assert git(rig.workdir, "for-each-ref", f"refs/agentmesh/{session}")
    delete_session(here(rig), session)
    assert rig.one("select count(*) from agentmesh.sessions") == 0
    assert git(rig.workdir, "for-each-ref", "--format=%(refname)", "refs/agentmesh") == "refs/agentmesh/other/kept"
    assert not tree.parent.exists()
    assert (git(rig.workdir, "status", "--porcelain"), git(rig.workdir, "log", "--all", "--format=%H")) == before


def test_a_deleted_session_takes_the_refs_of_its_shared_directory_with_it(grove: Rig):
    rig = grove
    rig.script("root", do(edit("a.txt", "of root\n")), say("done"))
    rig.worker()
    rig.run()
    session = rig.one("select session_id from agentmesh.agents")
    assert git(rig.workdir, "for-each-ref", f"refs/agentmesh/{session}")
    delete_session(here(rig), session)
    assert not git(rig.workdir, "for-each-ref", "refs/agentmesh")


def test_a_session_that_runs_is_not_deleted_and_keeps_all(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    session, refs = rig.one("select session_id from agentmesh.agents limit 1"), git(rig.workdir, "for-each-ref")
    rig.fork("busy", "go")
    rig.script("busy", when(never := threading.Event(), say("never")))
    rig.until_asked("busy")
    with pytest.raises(SessionRunning):
        delete_session(here(rig), session)
    never.set()
    assert git(rig.workdir, "for-each-ref") == refs
    assert tree_of(rig, "child").is_dir()


def test_a_folder_without_our_marker_outlives_its_session(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    folder = tree_of(rig, "child").parent
    (folder / "workspace.json").write_text('{"workspace": "another"}')
    delete_session(here(rig), rig.one("select session_id from agentmesh.agents limit 1"))
    assert (folder / "tree" / "a.txt").exists()


# Leases


def test_who_meets_a_lease_is_told_the_holder_until_its_turn_ends(grove: Rig):
    rig = grove
    session = rig.one("select session_id from agentmesh.agents")
    rig.db.run(leases.set_prefixes, session, ["src"])
    rig.fork("one")
    rig.fork("two")
    held = "select count(*) from agentmesh.leases"
    rig.script(
        "one",
        do(call("write", path="src/one.py", content="1\n")),
        once(lambda: rig.results("write", "two"), say("ready")),
    )
    rig.script(
        "two",
        once(lambda: rig.one(held), do(call("write", path="src/two.py", content="2\n"))),
        do(call("write", path="two.py", content="2\n")),
        once(idle(rig, "one"), do(call("write", path="src/two.py", content="2\n"))),
        say("ready"),
    )
    rig.worker(workspace=Settings(leases=("src",)))
    rig.prompt("go", "one")
    rig.prompt("go", "two")
    rig.rest()
    refused, elsewhere, later = rig.results("write", "two")
    assert refused["error"] == "one writes in src/ until its turn ends; nothing was changed"
    assert "error" not in elsewhere
    assert "error" not in later
    assert rig.one(held) == 0


# The sweep


def test_the_tree_of_a_killed_agent_goes_and_its_last_files_stay_as_a_snapshot(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    tree = tree_of(rig, "child")
    write(tree, {"late.txt": "after the last snapshot\n"})
    sweep.sweep(here(rig))
    assert tree.is_dir(), "its agent lives"
    child = rig.agent("child")
    rig.kill("child")
    sweep.sweep(here(rig))
    assert not tree.parent.exists()
    state, head = rig.conn.execute("select state, head from agentmesh.workspaces where kind = 'own'").fetchone() or ()
    assert state == "removed"
    assert git(rig.workdir, "show", f"{head}:late.txt") == "after the last snapshot"
    assert merging.merge(here(rig), child).status is MergeStatus.MERGED
    assert (rig.workdir / "late.txt").exists()


def test_a_folder_without_our_marker_is_never_removed(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    folder = tree_of(rig, "child").parent
    (folder / "workspace.json").write_text('{"workspace": "another"}')
    rig.kill("child")
    sweep.sweep(here(rig))
    assert (folder / "tree" / "a.txt").exists()
    assert rig.one("select state from agentmesh.workspaces where kind = 'own'") == "removing"
    assert Fault.LEFT in faults(rig)


def test_snapshots_beyond_the_newest_are_freed(grove: Rig):
    rig = grove
    rig.script("root", *(do(edit("a.txt", f"{n}\n")) for n in range(6)), say("done"))
    rig.worker()
    rig.run()
    among = here(rig)
    among.settings = Settings(keep=2)
    refs = lambda: git(rig.workdir, "for-each-ref", "refs/agentmesh").splitlines()  # noqa: E731
    before = len(refs())
    assert sweep.free(among) > 0
    assert len(refs()) < before
    assert rig.one("select count(*) from agentmesh.snapshots where freed_at is null and ref is not null") == len(refs())
    assert sweep.free(among) == 0


def test_the_refs_of_a_reaped_agent_go_once_its_files_are_merged(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    kept = "select ref from agentmesh.snapshots where freed_at is null and workspace_id in ({})"
    own_, shared = (
        kept.format(f"select id from agentmesh.workspaces where kind = '{kind}'") for kind in ("own", "shared")
    )
    refs = lambda: git(rig.workdir, "for-each-ref", "--format=%(refname)", "refs/agentmesh").splitlines()  # noqa: E731
    rows = lambda query: sorted(ref for (ref,) in rig.conn.execute(query))  # noqa: E731
    rig.kill("child")
    sweep.sweep(here(rig))
    assert rows(own_), "until it is reaped, its files can be merged"
    assert refs() == sorted(rows(own_) + rows(shared))
    rig.db.run(sessions.reap, rig.one("select session_id from agentmesh.agents"))
    sweep.sweep(here(rig))
    git(rig.workdir, "gc", "--prune=now", "--quiet")
    assert merging.merge(here(rig), rig.agent("child")).status is MergeStatus.MERGED, "nothing is lost by a reap"
    sweep.sweep(here(rig))
    assert rows(own_) == []
    assert refs() == rows(shared) != [], "and no others"
    assert repair.look(here(rig)) == []


def test_a_repository_that_cannot_be_opened_does_not_end_the_sweep(grove: Rig):
    rig = grove
    rig.script("root", *(do(edit("a.txt", f"{n}\n")) for n in range(6)), say("done"))
    rig.worker()
    rig.run()
    among = here(rig)
    among.settings = Settings(keep=2)
    shutil.rmtree(rig.workdir / ".git")
    (rig.workdir / ".git").mkdir()
    assert sweep.free(among) == 0
    assert rig.one("select count(*) from agentmesh.snapshots where freed_at is not null") == 0


def test_a_note_in_a_folder_that_is_no_workspaces_does_not_end_the_sweep(grove: Rig):
    rig = grove
    rig.script("root", do(edit("a.txt", "1\n")), say("done"))
    rig.worker()
    rig.run()
    strange = rig.data_dir / "trees" / "a-copy.bak"
    strange.mkdir()
    (strange / NOTE).write_text("[]")
    sweep.sweep(here(rig))
    assert repair.look(here(rig)) == []


def test_a_workspace_that_cannot_be_locked_does_not_end_the_sweep(grove: Rig, caplog: pytest.LogCaptureFixture):
    rig = grove
    rig.script("root", do(edit("a.txt", "1\n")), say("done"))
    rig.worker()
    rig.run()
    rig.rest()
    (folder,) = (rig.data_dir / "trees").iterdir()
    (folder / NOTE).write_text("[]")
    (folder / "lock").unlink()
    (folder / "lock").mkdir()
    sweep.sweep(here(rig))
    assert "could not lock the files" in caplog.text


# Repair


def test_nothing_is_wrong_with_a_mesh_at_rest(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    assert repair.look(here(rig)) == []
    assert repair.mend(here(rig), repair.look(here(rig))) == []


def test_a_directory_that_was_removed_is_made_again(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    tree = tree_of(rig, "child")
    shutil.rmtree(tree)
    (found,) = repair.look(here(rig))
    assert (found.fault, bool(found.remedy)) == (Fault.NO_DIRECTORY, True)
    assert all(one.done for one in repair.mend(here(rig), repair.look(here(rig))))
    assert (tree / "a.txt").read_text() == "of the child\n"
    assert repair.look(here(rig)) == []


def test_a_lost_marker_is_written_again(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    (tree_of(rig, "child").parent / "workspace.json").unlink()
    assert faults(rig) == [Fault.NO_MARKER]
    assert all(one.done for one in repair.mend(here(rig), repair.look(here(rig))))
    assert repair.look(here(rig)) == []


def test_a_folder_that_no_row_knows_is_named_and_removed_only_when_asked(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    stray = rig.data_dir / "trees" / "00000000-0000-4000-8000-000000000000"
    stray.mkdir()
    (stray / "file").touch()
    (found,) = repair.look(here(rig))
    assert (found.fault, found.remedy) == (Fault.NO_ROW, "")
    assert [one.done for one in repair.mend(here(rig), repair.look(here(rig)))] == [False]
    assert (stray / "file").exists()
    assert not repair.remove(here(rig), UUID(stray.name)).done, "it has no marker of ours"
    (stray / "workspace.json").write_text(f'{{"workspace": "{stray.name}"}}')
    assert repair.remove(here(rig), UUID(stray.name)).done
    assert not stray.exists()


def test_a_ref_without_a_row_is_freed_and_a_row_without_its_tree_says_so(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    session = rig.one("select session_id from agentmesh.agents")
    tree = git(rig.workdir, "rev-parse", "HEAD^{tree}")
    git(rig.workdir, "update-ref", f"refs/agentmesh/{session}/stray", tree)
    assert faults(rig) == [Fault.STRAY_REF]
    assert all(one.done for one in repair.mend(here(rig), repair.look(here(rig))))
    assert repair.look(here(rig)) == []


def test_an_own_tree_whose_newest_snapshot_is_gone_is_named_and_not_touched(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    head = rig.one("select head from agentmesh.workspaces where kind = 'own'")
    shutil.rmtree(rig.workdir / ".git" / "objects" / head[:2])
    found = {one.fault: one for one in repair.look(here(rig))}[Fault.NO_TREE]
    assert (found.remedy, bool(found.advice)) == ("", True)
    repair.mend(here(rig), repair.look(here(rig)))
    assert (tree_of(rig, "child") / "a.txt").read_text() == "of the child\n"


def test_a_repository_that_was_moved_with_its_directory_is_found(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    moved = Path(shutil.move(rig.workdir, rig.workdir.with_name("moved")))
    assert set(faults(rig)) == {Fault.MOVED}
    assert all(not one.remedy for one in repair.look(here(rig)))
    shutil.move(moved, rig.workdir)
    assert repair.look(here(rig)) == []


def test_a_repository_that_has_gone_is_named_and_the_trees_stay(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    shutil.rmtree(rig.workdir / ".git")
    assert set(faults(rig)) == {Fault.MOVED}
    mended = repair.mend(here(rig), repair.look(here(rig)))
    assert [one.done for one in mended] == [False] * len(mended)
    assert all("Move it back" in one.words for one in mended)
    assert (tree_of(rig, "child") / "a.txt").read_text() == "of the child\n"


def test_snapshots_that_went_with_a_repository_that_was_made_anew_are_given_up(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    kept = "select count(*) from agentmesh.snapshots where freed_at is null and ref is not null"
    count = rig.one(kept)
    shutil.rmtree(rig.workdir / ".git")
    git(rig.workdir, "init", "-q")
    found = repair.look(here(rig))
    assert [one.fault for one in found] == [Fault.NO_TREE] * (count + 1)
    assert [one.done for one in repair.mend(here(rig), repair.look(here(rig)))] == [False] + [True] * count
    assert rig.one(kept) == 0
    (left,) = repair.look(here(rig))
    assert (left.fault, left.remedy) == (Fault.NO_TREE, ""), "its agent's files are all that is left of it"
    assert (tree_of(rig, "child") / "a.txt").read_text() == "of the child\n"


def test_a_repository_that_cannot_be_opened_hides_no_other_fault(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    shutil.rmtree(rig.workdir / ".git")
    (rig.workdir / ".git").mkdir()
    stray = rig.data_dir / "trees" / "00000000-0000-4000-8000-000000000000"
    stray.mkdir()
    found = {one.fault: one for one in repair.look(here(rig))}
    assert set(found) == {Fault.MOVED, Fault.NO_ROW}
    assert (found[Fault.MOVED].remedy, "cannot be opened" in found[Fault.MOVED].words) == ("", True)
    assert not any(one.done for one in repair.mend(here(rig), repair.look(here(rig))))


def test_a_check_that_is_interrupted_leaves_everything_as_it_was(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    cancel = Cancel()
    seen: list[Path] = []

    def check(folder: Path, cancel: Cancel) -> Checked:
        seen.append(folder)
        assert (folder / "a.txt").read_text() == "of the child\n"
        cancel.set(CancelReason.INTERRUPT)
        return Checked("make test", None, "", stopped=True)

    result = merging.merge(here(rig), rig.agent("child"), terms=MergeTerms(check=check), cancel=cancel)
    assert result.status is MergeStatus.STOPPED
    assert not seen[0].exists()
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert rig.one("select count(*) from agentmesh.merges") == 0


def test_a_sweep_comes_although_the_system_gave_no_thread_for_the_last(rig: Rig, monkeypatch):
    NoThreads(monkeypatch, "sweep", 1)
    monkeypatch.setattr(sweep, "_EVERY", 0.0)
    swept = threading.Event()
    monkeypatch.setattr(sweep, "finish_left", lambda _workspaces: swept.set())
    sweeper = sweep.Sweeper()
    sweeper.tick(here(rig))
    assert not swept.is_set()
    sweeper.tick(here(rig))
    assert swept.wait(30)


def test_a_sweep_lets_unused_files_go_from_memory(grove: Rig, monkeypatch):
    workspaces = here(grove)
    row = grove.db.run(rows.of_session, grove.one("select id from agentmesh.sessions"))
    root = workspaces.root_of(row)
    workspaces.now(root, row.session_id)
    store = workspaces.store(row.id, workspaces.place_of(root))
    assert store._look is not None
    sweep.sweep(workspaces)
    assert store._look is not None
    monkeypatch.setattr(sweep, "_UNUSED", 0.0)
    sweep.sweep(workspaces)
    assert store._look is None
