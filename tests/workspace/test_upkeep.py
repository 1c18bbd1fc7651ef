"""Conflicts while they grow, leases, the sweep, and repair."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pytest

from agentmesh.config.schema import Workspace as Settings
from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.store import leases
from agentmesh.workspace import merging, repair, sweep
from agentmesh.workspace.results import Checked, Fault, MergeStatus
from tests.fixtures.engine import Rig, call, do, once, say
from tests.fixtures.repositories import git, write
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


# Repair


def test_nothing_is_wrong_with_a_mesh_at_rest(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    assert repair.look(here(rig)) == []
    assert repair.mend(here(rig)) == []


def test_a_directory_that_was_removed_is_made_again(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    tree = tree_of(rig, "child")
    shutil.rmtree(tree)
    (found,) = repair.look(here(rig))
    assert (found.fault, bool(found.remedy)) == (Fault.NO_DIRECTORY, True)
    assert all(one.done for one in repair.mend(here(rig)))
    assert (tree / "a.txt").read_text() == "of the child\n"
    assert repair.look(here(rig)) == []


def test_a_lost_marker_is_written_again(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    (tree_of(rig, "child").parent / "workspace.json").unlink()
    assert faults(rig) == [Fault.NO_MARKER]
    assert all(one.done for one in repair.mend(here(rig)))
    assert repair.look(here(rig)) == []


def test_a_folder_that_no_row_knows_is_named_and_removed_only_when_asked(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    stray = rig.data_dir / "trees" / "00000000-0000-4000-8000-000000000000"
    stray.mkdir()
    (stray / "file").touch()
    (found,) = repair.look(here(rig))
    assert (found.fault, found.remedy) == (Fault.NO_ROW, "")
    assert [one.done for one in repair.mend(here(rig))] == [False]
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
    assert all(one.done for one in repair.mend(here(rig)))
    assert repair.look(here(rig)) == []


def test_a_repository_that_was_moved_with_its_directory_is_found(grove: Rig):
    rig = grove
    with_child(rig, edit("a.txt", "of the child\n"))
    moved = Path(shutil.move(rig.workdir, rig.workdir.with_name("moved")))
    assert set(faults(rig)) == {Fault.MOVED}
    assert all(not one.remedy for one in repair.look(here(rig)))
    shutil.move(moved, rig.workdir)
    assert repair.look(here(rig)) == []


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

    result = merging.merge(here(rig), rig.agent("child"), check=check, cancel=cancel)
    assert result.status is MergeStatus.STOPPED
    assert not seen[0].exists()
    assert (rig.workdir / "a.txt").read_text() == "not committed\n"
    assert rig.one("select count(*) from agentmesh.merges") == 0
