"""A process is killed (SIGKILL) at each point of an undo, a redo or a rewind: nothing of it is lost to redo."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agentmesh.domain.errors import TreeBusy
from agentmesh.domain.ids import AgentId
from agentmesh.workspace import deleting, repair, sweep, undo
from agentmesh.workspace.results import UndoStatus
from agentmesh.workspace.workspaces import Workspaces
from tests.fixtures.engine import PATIENCE, Reply, Rig, call, do, say
from tests.fixtures.repositories import untouched, write
from tests.fixtures.worker_process import HOST, USER, Failpoint, WatchedDatabase, renaming
from tests.workspace.conftest import here

pytestmark = pytest.mark.timeout(180)

POINTS = ["before rename 1", "before rename 2", "before rename 3", "before record 1", "after record 1"]
UNDONE = {"a.txt": "not committed\n", "src/b.py": "b = 1\n", "src/deep/c.txt": "c\n"}
MADE = {"a.txt": "turn\n", "src/b.py": "turn\n", "src/deep/c.txt": "turn\n", "new/made.txt": "turn\n"}
ACTS: dict[str, Callable[..., object]] = {"undo": undo.undo, "redo": undo.redo, "rewind": partial(undo.rewind, row=0)}


def act(url: str, data_dir: Path, agent: AgentId, what: str, failpoint: str) -> None:
    """Undo, redo or rewind, and be killed at the failpoint."""
    deadly = Failpoint(failpoint)
    deadly.armed.set()
    database = WatchedDatabase(url, role="test")
    database.hook = deadly
    sys.addaudithook(partial(renaming, deadly))
    ACTS[what](Workspaces(database, data_dir, host=HOST, os_user=USER), agent)


def killed(rig: Rig, what: str, failpoint: str) -> None:
    """Let a process of its own undo, redo or rewind, and be killed."""
    arguments = (rig.url, rig.data_dir, rig.agent("root"), what, failpoint)
    process = multiprocessing.get_context("forkserver").Process(target=act, args=arguments)
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL


def one_turn(rig: Rig, *then: Reply) -> None:
    rig.script(
        "root",
        do(
            call(
                "bash",
                command="mkdir new; for f in a.txt src/b.py src/deep/c.txt new/made.txt; do echo turn > $f; done",
            )
        ),
        say("one"),
        *then,
    )
    write(rig.workdir, {"src/deep/c.txt": "c\n"})
    rig.worker()
    rig.run("turn one")
    rig.rest()


def files(rig: Rig) -> dict[str, str]:
    return {path: (rig.workdir / path).read_text() for path in MADE if (rig.workdir / path).exists()}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("what", ["undo", "rewind"])
def test_an_undo_that_was_cut_short_can_be_redone_in_full(grove: Rig, what: str, point: str):
    rig = grove
    one_turn(rig)
    before = untouched(rig.workdir)
    killed(rig, what, point)
    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert files(rig) == UNDONE
    assert not list(rig.workdir.rglob(".agentmesh-*"))
    redone = undo.redo(here(rig), rig.agent("root"))
    assert redone.status is UndoStatus.DONE
    assert {one.path for one in redone.files} == set(MADE)
    assert files(rig) == MADE
    again = undo.undo(here(rig), rig.agent("root"))
    assert (again.status, files(rig)) == (UndoStatus.DONE, UNDONE)
    assert untouched(rig.workdir) == before


@pytest.mark.parametrize("point", POINTS)
def test_a_redo_that_was_cut_short_can_be_undone_and_redone_in_full(grove: Rig, point: str):
    rig = grove
    one_turn(rig)
    undo.undo(here(rig), rig.agent("root"))
    killed(rig, "redo", point)
    assert undo.redo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert files(rig) == MADE
    undone = undo.undo(here(rig), rig.agent("root"))
    assert {one.path for one in undone.files} == set(MADE)
    assert files(rig) == UNDONE
    assert undo.redo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert files(rig) == MADE


@pytest.mark.parametrize("point", ["before rename 2", "before record 1"])
def test_what_a_person_changed_after_the_crash_stays(grove: Rig, point: str):
    rig = grove
    one_turn(rig)
    killed(rig, "undo", point)
    write(rig.workdir, {"a.txt": "mine\n", "new/made.txt": "mine too\n", "other.txt": "mine\n"})
    refused = undo.undo(here(rig), rig.agent("root"))
    assert (refused.status, {one.path for one in refused.refused}) == (UndoStatus.REFUSED, {"a.txt", "new/made.txt"})
    assert files(rig) == {**MADE, "a.txt": "mine\n", "new/made.txt": "mine too\n"}
    assert (rig.workdir / "other.txt").read_text() == "mine\n"


@pytest.mark.parametrize("point", ["before rename 2", "before record 1"])
def test_the_next_turn_finds_the_files_as_if_nobody_had_begun(grove: Rig, point: str):
    rig = grove
    look = call("bash", command="cat a.txt src/b.py src/deep/c.txt new/made.txt; echo two > two.txt")
    one_turn(rig, do(look), say("two"))
    killed(rig, "undo", point)
    rig.run("turn two")
    rig.rest()
    assert rig.results("bash")[-1]["output"] == "turn\n" * 4
    undone = undo.undo(here(rig), rig.agent("root"))
    assert [one.path for one in undone.files] == ["two.txt"]
    assert {one.path for one in undo.undo(here(rig), rig.agent("root")).files} == set(MADE)
    assert files(rig) == UNDONE


def test_the_files_are_as_before_when_an_undo_fails_because_its_row_cannot_be_stored(grove: Rig):
    rig = grove
    one_turn(rig)
    database = WatchedDatabase(rig.url, role="test")

    def hook(when: str, name: str) -> None:
        if (when, name) == ("before", "record"):
            assert files(rig) == UNDONE
            raise TreeBusy("somebody else is faster")

    database.hook = hook
    with database, pytest.raises(TreeBusy, match="faster"):
        undo.undo(Workspaces(database, rig.data_dir, host=HOST, os_user=USER), rig.agent("root"))
    assert files(rig) == MADE
    assert undo.undo(here(rig), rig.agent("root")).status is UndoStatus.DONE
    assert files(rig) == UNDONE


def test_the_ref_of_an_undo_that_is_under_way_is_no_stray_one(grove: Rig):
    rig = grove
    one_turn(rig)
    killed(rig, "undo", "before record 1")
    assert repair.look(here(rig)) == []
    sweep.sweep(here(rig))
    assert repair.look(here(rig)) == [], "it went with what it named"


def test_a_sweep_takes_back_what_nobody_else_does(grove: Rig):
    rig = grove
    one_turn(rig)
    killed(rig, "undo", "before record 1")
    assert files(rig) == UNDONE
    sweep.sweep(here(rig))
    assert files(rig) == MADE
    assert {one.path for one in undo.undo(here(rig), rig.agent("root")).files} == set(MADE)


def test_the_files_are_whole_again_before_a_session_is_erased(grove: Rig):
    rig = grove
    one_turn(rig)
    killed(rig, "undo", "before rename 2")
    assert files(rig) not in (UNDONE, MADE)
    rig.end()
    deleting.delete_session(here(rig), rig.one("select session_id from agentmesh.agents where id = %s", rig.root))
    assert files(rig) == MADE
