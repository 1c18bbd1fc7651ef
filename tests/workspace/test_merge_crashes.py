"""A process is killed (SIGKILL) at each point of a merge; whoever comes next finishes it, and nothing is half done."""

from __future__ import annotations

import signal

import pytest

from agentmesh.workspace import repair
from agentmesh.workspace.applying import finish_left
from agentmesh.workspace.merging import MergeTerms, merge
from agentmesh.workspace.results import Fault, MergeStatus
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git, untouched, write
from tests.workspace.conftest import edit, here, own

pytestmark = pytest.mark.timeout(180)

FILES = {f"made/{name}.txt": f"{name}\n" for name in ("a", "b", "c")}
POINTS = [
    *("before begin 1", "after begin 1", "before rename 1", "before rename 2", "before rename 3"),
    *("before end 1", "after end 1"),
]


def script(rig: Rig) -> None:
    rig.script("root", do(own("child")), say("forked"), do(call("merge", agent="child")), say("merged"))
    rig.script("child", do(*(edit(path, text) for path, text in FILES.items())), say("changed"))


def made(rig: Rig) -> dict[str, str]:
    return {path: (rig.workdir / path).read_text() for path in FILES if (rig.workdir / path).exists()}


def killed(rig: Rig, point: str) -> None:
    """Let a process of its own merge, and be killed at this point."""
    script(rig)
    first = rig.process(point)
    rig.prompt()
    assert first.join() == -signal.SIGKILL
    rig.bury(first.worker_id)


def assert_merged_once(rig: Rig) -> None:
    assert made(rig) == FILES
    assert rig.conn.execute("select state, count(*) from agentmesh.merges group by 1").fetchall() == [("done", 1)]
    assert rig.one("select count(*) from agentmesh.snapshots where kind = 'merge'") == 1
    head, base = rig.conn.execute(
        "select w.head, o.base from agentmesh.workspaces w join agentmesh.workspaces o on o.origin = w.id"
    ).fetchone() or (None, None)
    assert git(rig.workdir, "cat-file", "-t", str(head)) == "tree"
    assert rig.one("select theirs from agentmesh.merges") == base


@pytest.mark.parametrize("point", POINTS)
def test_a_merge_that_was_cut_short_is_finished_by_the_next_owner(grove: Rig, point: str):
    rig = grove
    before = untouched(rig.workdir)
    killed(rig, point)
    rig.worker()
    rig.rest()
    (merged,) = rig.results("merge")
    assert merged["status"] == "merged", merged
    assert {one["path"] for one in merged["files"]} == set(FILES)
    assert_merged_once(rig)
    assert untouched(rig.workdir) == before
    assert not list(rig.workdir.rglob(".agentmesh-*"))


@pytest.mark.parametrize("point", ["after begin 1", "before rename 2", "before end 1"])
def test_a_merge_that_was_cut_short_is_finished_by_whoever_finds_it(grove: Rig, point: str):
    rig = grove
    killed(rig, point)
    among = here(rig)
    (found,) = [one for one in repair.look(among) if one.fault is Fault.UNFINISHED]
    assert [one.status for one in finish_left(among)] == [MergeStatus.MERGED]
    assert_merged_once(rig)
    assert repair.mend(among, [found])[0].words == "It is in order by now."
    rig.worker()
    rig.rest()
    (merged,) = rig.results("merge")
    assert merged["status"] == "merged", "the call has its result from the next owner"
    assert_merged_once(rig)


def test_a_merge_whose_files_were_changed_after_the_crash_is_taken_back(grove: Rig):
    rig = grove
    killed(rig, "before rename 3")
    written = sorted(made(rig))
    assert 0 < len(written) < len(FILES)
    mine = next(path for path in FILES if path not in written)
    (rig.workdir / mine).write_text("mine\n")
    (done,) = finish_left(here(rig))
    assert (done.status, done.differs) == (MergeStatus.CHANGED, (mine,))
    assert made(rig) == {mine: "mine\n"}
    assert rig.one("select state from agentmesh.merges") == "refused"


def test_a_merge_that_put_a_folder_in_a_files_place_is_given_up_if_somebody_wrote_there(grove: Rig):
    """To take it back would put a folder where somebody's file is now."""
    rig = grove
    write(rig.workdir, {"made/old": "old\n"})
    rig.script("root", do(own("child")), say("forked"), do(call("merge", agent="child")), say("merged"))
    rig.script("child", do(call("bash", command="rm -r made; echo new > made; echo z > z.txt")), say("changed"))
    first = rig.process("before end 1")
    rig.prompt()
    assert first.join() == -signal.SIGKILL
    rig.bury(first.worker_id)
    (rig.workdir / "made").write_text("mine\n")
    (done,) = finish_left(here(rig))
    assert (done.status, done.differs) == (MergeStatus.CHANGED, ("made", "made/old"))
    assert (rig.workdir / "made").read_text() == "mine\n"
    assert not (rig.workdir / "z.txt").exists()
    assert rig.one("select state from agentmesh.merges") == "refused"


def test_a_merge_after_the_crash_first_takes_back_what_does_not_fit_any_more(grove: Rig):
    rig = grove
    killed(rig, "before end 1")
    assert made(rig) == FILES
    (rig.workdir / "made/a.txt").write_text("mine\n")
    done = merge(here(rig), rig.agent("child"))
    assert (done.status, [one.path for one in done.conflicts]) == (MergeStatus.CONFLICTS, ["made/a.txt"])
    assert made(rig) == {"made/a.txt": "mine\n"}, "nothing is merged, and the result says so"


@pytest.mark.parametrize("preview", [False, True])
def test_a_merge_after_the_crash_first_finishes_the_one_that_was_cut_short(grove: Rig, *, preview: bool):
    rig = grove
    killed(rig, "before rename 2")
    done = merge(here(rig), rig.agent("child"), terms=MergeTerms(preview=preview))
    assert (done.status, done.note) == (MergeStatus.NOTHING, "A merge that was cut short has been finished.")
    assert_merged_once(rig)


def test_the_tree_of_a_check_that_was_cut_short_is_removed(grove: Rig):
    rig = grove
    rig.script(
        "root",
        do(own("child")),
        say("forked"),
        do(call("merge", agent="child", check="sleep 60")),
    )
    rig.script("child", do(edit("made.txt", "x\n")), say("changed"))
    first = rig.process()
    rig.prompt()
    trees = rig.data_dir / "trees"
    rig.until(lambda: [*trees.glob("check-*/tree/made.txt")], "the tree of the check")
    assert repair.look(here(rig)) == [], "somebody works in it"
    first.process.kill()
    assert first.join() == -signal.SIGKILL
    (left,) = [one for one in repair.look(here(rig)) if one.fault is Fault.CHECK_LEFT]
    assert repair.mend(here(rig), [left])[0].done
    assert [*trees.glob("check-*")] == []
    assert not (rig.workdir / "made.txt").exists()
