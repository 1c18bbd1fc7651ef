"""Random forks, steps, merges and undos, on the rows and on a model in Python: heads and bases must always agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agentmesh.domain.errors import MergeBusy, NotMergeable, Refused, TreeMoved
from agentmesh.domain.ids import AgentId
from agentmesh.store import merges, snapshots, workspaces
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh
from tests.fixtures.trees import Trees

pytestmark = pytest.mark.only_rows

SOMEBODY = st.integers(0, 99)
MAX_AGENTS = 6


@dataclass(eq=False)
class Files:
    """A workspace: what it has, what it has in common with its origin, and what can be undone."""

    origin: Files | None
    head: str
    base: str | None = None
    removed: bool = False
    merged: list[Merged] = field(default_factory=list)

    def into(self) -> Files | None:
        """Return where it is merged to."""
        above = self.origin
        while above and above.removed:
            above = above.origin
        return above


@dataclass(eq=False)
class Merged:
    """A merge that is done: the tree before it, and the base of the own side before and after."""

    id: int
    own: Files
    before: str
    base: str
    theirs: str
    result: str


@dataclass(eq=False)
class Somebody:
    """An agent, and whether it lives."""

    id: AgentId
    parent: Somebody | None
    files: Files
    alive: bool = True


class Work(RuleBasedStateMachine):
    """Does the same on both sides."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.mesh = mesh
        mesh.root = mesh.new_session(max_depth=9)
        mesh.session = mesh.session_of(mesh.root)
        mesh.worker = mesh.join(session=mesh.session)
        self.trees = Trees(mesh)
        self.agents = [Somebody(mesh.root, None, Files(None, self.trees.first))]
        self.undone: list[tuple[Files, Merged]] = []

    def teardown(self) -> None:
        assert violations(self.mesh.conn) == []

    def pick(self, n: int, *, alive: bool = True) -> Somebody:
        found = [agent for agent in self.agents if agent.alive or not alive]
        return found[n % len(found)]

    @rule(who=SOMEBODY, own=st.booleans())
    def fork(self, who: int, own: bool) -> None:
        parent = self.pick(who)
        if len(self.agents) == MAX_AGENTS:
            return
        if own:
            child = self.trees.own(parent.id, "x")
            files = Files(parent.files, parent.files.head, parent.files.head)
        else:
            child, files = self.mesh.fork(parent.id, "x", "work"), parent.files
        self.agents.append(Somebody(child, parent, files))

    @rule(who=SOMEBODY)
    def step(self, who: int) -> None:
        agent = self.pick(who)
        agent.files.head = self.trees.work(agent.id, "a.txt")
        self.undone = []

    @rule(into=SOMEBODY, of=SOMEBODY, interrupted=st.booleans())
    def merge(self, into: int, of: int, interrupted: bool) -> None:
        target, source = self.pick(into), self.pick(of, alive=False)
        theirs, ours = source.files, target.files
        own = theirs if theirs.into() is ours else ours if ours.into() is theirs else None
        if own is None or ours is theirs:
            self.refused(NotMergeable, lambda: self.mesh.run(merges.sides, target.id, source.id))
            return
        assert own.base is not None
        plan = self.trees.plan(target.id, source.id)
        assert (plan.base, plan.ours, plan.theirs) == (own.base, ours.head, theirs.head)
        begun = self.mesh.run(merges.begin, plan)
        if interrupted:
            self.refused(MergeBusy, lambda: self.trees.begin(target.id, source.id))
        self.mesh.run(merges.end, begun.id, told_source="merged")
        assert plan.result is not None
        ours.merged.append(Merged(begun.id, own, ours.head, own.base, theirs.head, plan.result))
        ours.head, own.base = plan.result, theirs.head
        self.undone = []

    @rule(into=SOMEBODY, of=SOMEBODY)
    def refuse(self, into: int, of: int) -> None:
        target, source = self.pick(into), self.pick(of)
        if source.files.into() is target.files:
            self.mesh.run(merges.refused, self.trees.plan(target.id, source.id), "conflicts", told="mend it")

    @rule(into=SOMEBODY, of=SOMEBODY)
    def merge_of_older_trees(self, into: int, of: int) -> None:
        target, source = self.pick(into), self.pick(of)
        if source.files.into() is target.files:
            plan = self.trees.plan(target.id, source.id)
            source.files.head = self.trees.work(source.id, "b.txt")
            self.undone = []
            self.refused(TreeMoved, lambda: self.mesh.run(merges.begin, plan))

    @rule(who=SOMEBODY)
    def undo_the_newest_merge(self, who: int) -> None:
        agent = self.pick(who)
        if agent.files.merged:
            merge = agent.files.merged.pop()
            self.trees.undo(agent.id, merge.before, [merge.id])
            agent.files.head = merge.before
            if merge.own.base == merge.theirs:
                merge.own.base = merge.base
            self.undone = [(agent.files, merge)]

    @rule(who=SOMEBODY)
    def redo(self, who: int) -> None:
        for files, merge in self.undone:
            agent = next((agent for agent in self.agents if agent.files is files and agent.alive), None)
            if agent:
                self.trees.undo(agent.id, merge.result, [merge.id], kind="redo")
                files.head = merge.result
                files.merged.append(merge)
                if merge.own.base == merge.base:
                    merge.own.base = merge.theirs
        self.undone = []

    @rule(who=SOMEBODY)
    def kill_and_remove(self, who: int) -> None:
        agent = self.pick(who)
        if agent.parent is None:
            return
        self.mesh.kill(agent.id)
        dying = [agent]
        for one in dying:
            one.alive = False
            dying += [each for each in self.agents if each.parent is one and each.alive]
        for row in self.mesh.run(workspaces.unused, "testhost", "tester"):
            self.mesh.run(workspaces.removing, row.id)
            self.mesh.run(workspaces.removed, row.id)
        for one in self.agents:
            one.files.removed = not any(each.alive for each in self.agents if each.files is one.files)

    @invariant()
    def both_agree(self) -> None:
        for agent in self.agents:
            row = self.trees.of(agent.id)
            assert (row.head, row.base) == (agent.files.head, agent.files.base)
            assert (row.state == "removed") is agent.files.removed
            newest = self.mesh.run(snapshots.newest, row.id)
            assert newest is not None
            assert newest.tree == row.head

    def refused(self, kind: type[Refused], call: Callable[[], Any]) -> None:
        with pytest.raises(kind):
            call()


def test_rows_and_model_agree_on_heads_and_bases(mesh: Mesh):
    run_state_machine_as_test(
        cast("type[Work]", lambda: Work(mesh)),
        settings=settings(
            max_examples=20,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )
