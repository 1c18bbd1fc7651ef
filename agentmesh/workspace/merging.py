"""Merging the files of one workspace into another: all of them in one commit, or none.

Both sides are looked at first, and merged in memory. The check runs in a throw-away tree of the result. Then, with the
target's files locked, the plan is stored, the files are written, and one commit makes it true (``applying``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import MergeBusy, NotMergeable, TreeMoved
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import clip, one_line, storable
from agentmesh.domain.workspaces import Workspace, WorkspaceKind
from agentmesh.store import agents, merges, snapshots
from agentmesh.store import workspaces as rows
from agentmesh.store.call import Lease
from agentmesh.workspace import merge_words as words
from agentmesh.workspace.applying import apply_begun, continued, finish_into
from agentmesh.workspace.opening import held, present, settled
from agentmesh.workspace.results import Checked, MergeResult, MergeStatus, plan_id
from agentmesh.workspace.unreadable import unreadable

if TYPE_CHECKING:
    from agentmesh.git.facts import FileDiff, Merged
    from agentmesh.git.store import Store
    from agentmesh.workspace.files import WorkspaceFiles

Check = Callable[[Path, Cancel], Checked]
"""Runs a command in a directory with the result's files; ``agentmesh.tools.check.CheckCommand`` is one."""

_TRIES: Final = 60
_PAUSE: Final = 0.05
"""Seconds between two looks, if somebody has changed files or stored a snapshot meanwhile."""
_CHECKS: Final = 3
"""How often a check is run, if the files change while it runs."""
_LONGEST_DIFF: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class MergeTerms:
    """What a merge must respect, and how far it goes."""

    check: Check | None = None
    """The check that the merged files must pass."""
    forbidden: Callable[[str], bool] | None = None
    """Whether the agent that asks may not write a file; None: it may write all."""
    withheld: Callable[[str], bool] | None = None
    """Whether a preview must not show a file; None: it shows all."""
    preview: bool = False
    """Only show what a merge would do: change nothing but finish what was cut short, and tell nobody."""
    agreed: str | None = None
    """The plan of a preview that a person has agreed to. If another one is to be written by now, only preview that."""


class _Moved(Exception):
    """Files or rows changed between a look and the next step: look again."""


class _BothSides(NamedTuple):
    """What both sides are now, and what comes of them."""

    sides: merges.Sides
    merged: Merged


@dataclass(slots=True)
class _Merging:
    """One merge, from the first look to its end."""

    workspaces: WorkspaceFiles
    target_agent: AgentId | None
    source_agent: AgentId
    lease: Lease | None
    terms: MergeTerms
    cancel: Cancel
    progress: Callable[[str], None]
    down: bool = field(init=False)
    source_name: str = field(init=False)
    target_name: str = field(init=False)
    source_lives: bool = field(init=False)
    source: Workspace = field(init=False)
    target: Workspace = field(init=False)
    checked: tuple[str, Checked] | None = None
    """The tree that was checked last, and how."""
    checks: int = 0
    has_finished: bool = False
    """Whether it has finished a merge that was cut short."""

    def __post_init__(self) -> None:
        run = self.workspaces.database.run
        source = run(agents.get, self.source_agent, idempotent=True)
        self.source_name, self.source_lives = source.name, source.status is not AgentStatus.DEAD
        self.target_name = run(agents.get, self.target_agent, idempotent=True).name if self.target_agent else ""
        sides = run(merges.sides, self.target_agent, self.source_agent, idempotent=True)
        self.down = not sides.is_up
        self.source, self.target = (run(rows.get, one, idempotent=True) for one in (sides.source, sides.target))

    def run(self) -> MergeResult:
        self.progress(f"merging {words.whose(self.source_name, down=self.down)}")
        for _ in range(_TRIES):
            try:
                found = self._once()
            except _Moved:
                if self.cancel.wait(_PAUSE):
                    return self._result(MergeStatus.STOPPED)
                continue
            if found is not None:
                return found
        return self._result(MergeStatus.CHANGED, note="The files kept changing while they were merged.")

    def _once(self) -> MergeResult | None:
        """Look at both sides, and end the merge if possible. None: the checked files have changed, so look again."""
        theirs = present(self.workspaces, self.source)
        with held(self.workspaces, self.target) as store:
            # First, because its files are there: they are not the work of somebody else.
            finished = finish_into(self.workspaces, store, self.target.id)
            self.has_finished |= any(one.status is MergeStatus.MERGED for one in finished)
            look = self._look(store, theirs)
            if early := self._without_writing(store, look):
                return early
            if not self._needs_check(look.merged.tree):
                return self._write(store, look)
        return self._run_check(store, str(look.merged.tree))

    def _look(self, store: Store, theirs: str | None) -> _BothSides:
        from agentmesh.git.merging import merge as merge_trees

        ours = settled(self.workspaces, store, self.target.id)
        run = self.workspaces.database.run
        sides = run(merges.sides, self.target_agent, self.source_agent, idempotent=True)
        if ours is None or sides.base is None or (sides.ours, sides.theirs) != (ours, theirs):
            raise _Moved
        names = (self.target_name or "here", self.source_name)
        return _BothSides(
            sides, merge_trees(store.place, sides.base, ours, str(theirs), markers=self.down, names=names)
        )

    def _without_writing(self, store: Store, look: _BothSides) -> MergeResult | None:
        """Return the result if nothing is to be written: a preview, nothing new, or conflicts."""
        sides, merged = look
        if self.terms.preview:
            return self._preview(store, look)
        if self.cancel.is_set():
            return self._result(MergeStatus.STOPPED)
        if (
            merged.tree == sides.ours and not merged.conflicts
        ):  # a conflict that is solved by keeping ours must still move the base
            return self._nothing()
        if merged.tree is None:
            return self._conflicts(look)
        self._require_inside(look)
        self._require_allowed(look)
        if marked := self._marked(store, look):
            return self._unsolved(look, marked)
        if self.terms.agreed not in (None, _plan_id(look)):
            return self._preview(store, look)
        return None

    def _marked(self, store: Store, look: _BothSides) -> tuple[str, ...]:
        """Return the files in which a merge from the parent has left conflict markers that are still there."""
        if self.down or look.merged.tree is None:
            return ()
        marked = words.marked(store.place, str(look.sides.ours), look.merged.tree)
        if not marked:
            return ()
        earlier = self.workspaces.database.run(merges.into, self.source.id, idempotent=True)
        return words.marked_by(store.place, earlier, marked)

    def _require_inside(self, look: _BothSides) -> None:
        """Refuse an agent's merge that would write outside the session's directory: its commands could not either."""
        outside = [one.path for one in look.merged.changes if one.path.startswith("../")]
        if outside and self.lease is not None and self.target.kind is WorkspaceKind.SHARED:
            raise NotMergeable(
                f"{self.source_name} changed files outside the session's directory: {words.listed(outside)}",
                hint=f"Nothing was changed. Let {self.source_name} take that back, or ask the user to merge it.",
            )

    def _require_allowed(self, look: _BothSides) -> None:
        """Refuse a merge that would write a file which rules deny to the agent that asks for it."""
        forbidden = self.terms.forbidden
        denied = [one.path for one in look.merged.changes if forbidden and forbidden(one.path)]
        if denied:
            raise NotMergeable(
                f"{self.source_name} changed files that a rule keeps from being written: {words.listed(denied)}",
                hint=f"Nothing was changed. Let {self.source_name} take that back, or ask the user to merge it.",
            )

    def _preview(self, store: Store, look: _BothSides) -> MergeResult:
        sides, merged = look
        text = ""
        if merged.tree is not None:
            from agentmesh.git.comparing import diff

            found = diff(store.place, str(sides.ours), merged.tree)
            text = clip(storable("\n".join(self._shown(one) for one in found)), _LONGEST_DIFF)
        if look.merged.changes or look.merged.conflicts:
            marked = self._marked(store, look)
            note = f"{words.markers_left(marked)} A merge would be refused." if marked else ""
            return self._result(MergeStatus.PREVIEW, look, diff=text, note=note)
        return self._nothing()

    def _nothing(self) -> MergeResult:
        note = "A merge that was cut short has been finished." if self.has_finished else ""
        return self._result(MergeStatus.NOTHING, note=note)

    def _shown(self, one: FileDiff) -> str:
        if self.terms.withheld and self.terms.withheld(one.path):
            return f"{one.path}: not shown, because a rule keeps it from being read"
        return one.text or f"{one.path}: binary"

    def _conflicts(self, look: _BothSides) -> MergeResult:
        result = self._result(MergeStatus.CONFLICTS, look)
        hidden = unreadable(self.workspaces.database, self.source_agent)
        return self._refused(look, result, "conflicts", words.to_solve(result, hidden))

    def _unsolved(self, look: _BothSides, marked: tuple[str, ...]) -> MergeResult:
        """Refuse files that still have the conflict markers of a merge from the parent."""
        result = self._result(MergeStatus.CONFLICTS, look, note=words.markers_left(marked))
        return self._refused(look, result, "conflict markers are left", words.to_finish(result))

    def _refused(self, look: _BothSides, result: MergeResult, reason: str, mail: str | None = None) -> MergeResult:
        told = mail if self.source_lives else None
        if told:
            result = replace(result, owner=self.source_name)
        elif mail:
            result = replace(result, note=words.of_dead(result))
        row = self.workspaces.database.run(
            merges.refused,
            self._plan(look),
            reason,
            words.conflicts_json(result),
            self.lease,
            result=words.told(result),
            told=told,
            idempotent=True,
        )
        return replace(result, id=row.id)

    def _needs_check(self, tree: str | None) -> bool:
        return self.terms.check is not None and (self.checked is None or self.checked[0] != tree)

    def _run_check(self, store: Store, tree: str) -> MergeResult | None:
        from agentmesh.workspace.checks import throw_away_tree

        assert self.terms.check is not None  # noqa: S101  _needs_check has looked
        self.checks += 1
        if self.checks > _CHECKS:
            return self._result(MergeStatus.CHANGED, note="The files kept changing while the check ran.")
        self.progress("making a tree for the check")
        folders, given = self.workspaces.folders, self.workspaces.settings
        with throw_away_tree(store.place, folders.trees, tree, copy=given.copy, link=given.link) as folder:
            self.progress("checking the merge")
            checked = self.terms.check(folder, self.cancel)
        self.checked = (tree, checked)
        if checked.stopped or self.cancel.is_set():
            return self._result(MergeStatus.STOPPED)
        if checked.passed:
            return None
        return self._failed()

    def _failed(self) -> MergeResult:
        """Record that the check failed, unless the files have changed meanwhile: then the row names the newest."""
        assert self.checked is not None  # noqa: S101
        result = self._result(MergeStatus.CHECK_FAILED)
        sides = self.workspaces.database.run(merges.sides, self.target_agent, self.source_agent, idempotent=True)
        plan = self._plan_of(sides, self.checked[0], ())
        reason = one_line(f"the check failed: {words.how_it_ended(self.checked[1])}", 500)
        row = self.workspaces.database.run(
            merges.refused, plan, reason, (), self.lease, result=words.told(result), idempotent=True
        )
        return replace(result, id=row.id)

    def _write(self, store: Store, look: _BothSides) -> MergeResult | None:
        run = self.workspaces.database.run
        self.progress("writing the merged files")
        try:
            row = run(merges.begin, self._plan(look), self.lease, idempotent=True)
        except TreeMoved as moved:
            raise _Moved from moved
        except MergeBusy as busy:  # the other way round, where it may go on
            raise _Moved from busy
        result = replace(self._result(MergeStatus.MERGED, look), left_out=self._left_out())
        return apply_begun(self.workspaces, store, row, self.lease, result)

    def _left_out(self) -> tuple[str, ...]:
        newest = self.workspaces.database.run(snapshots.newest, self.source.id, idempotent=True)
        return tuple(newest.left_out) if newest else ()

    def _plan(self, look: _BothSides) -> merges.MergePlan:
        changes = [(one.path, one.status, one.added, one.removed) for one in look.merged.changes]
        return self._plan_of(look.sides, look.merged.tree, changes)

    def _plan_of(
        self, sides: merges.Sides, tree: str | None, files: Sequence[tuple[str, str, int, int]]
    ) -> merges.MergePlan:
        checked = self.checked[1] if self.checked else None
        return merges.MergePlan(
            target_agent=self.target_agent,
            source_agent=self.source_agent,
            base=str(sides.base),
            ours=str(sides.ours),
            theirs=str(sides.theirs),
            result=tree,
            files=files,
            check_command=checked.command if checked else None,
            check_exit=checked.exit_code if checked else None,
        )

    def _result(
        self, status: MergeStatus, look: _BothSides | None = None, diff: str = "", note: str = ""
    ) -> MergeResult:
        return MergeResult(
            status,
            self.source_name,
            self.target_name if self.target.kind is WorkspaceKind.OWN else "",
            files=look.merged.changes if look else (),
            conflicts=look.merged.conflicts if look else (),
            down=self.down,
            check=self.checked[1] if self.checked else None,
            diff=diff,
            note=note,
            asked_by=self.target_name if self.lease else "",
            plan=_plan_id(look) if look else "",
        )


def _plan_id(look: _BothSides) -> str:
    """Return an id of the source's files and the files that are written; other files of the target may change."""
    return plan_id(look.sides.theirs, look.merged.changes)


def merge(
    workspaces: WorkspaceFiles,
    agent: AgentId,
    *,
    by: AgentId | None = None,
    lease: Lease | None = None,
    down: bool = False,
    terms: MergeTerms = MergeTerms(),
    cancel: Cancel | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> MergeResult:
    """Merge the files of an agent's own tree into the tree or directory that it was made from.

    ``by`` is the agent that asks, whose workspace gets the files; None is a person. ``down`` merges the other way
    round: the newest files of the workspace that the agent's tree was made from, into the agent's tree, with conflict
    markers. With a ``lease`` a merge that was made or refused also stores the result of the call that asked for it. The
    caller stores any other result: nothing to merge, a preview, or stopped.

    Raise UnknownAgent, NotMergeable, NoRepository, TreeBusy or TreeError if there are no two trees to merge.
    """
    run = workspaces.database.run
    if lease is not None and lease.seq is not None and lease.ordinal is not None:
        known = run(merges.of_call, lease.agent_id, lease.seq, lease.ordinal, idempotent=True)
        if known is not None:
            return continued(workspaces, known, lease)
    above = None if by and not down else run(merges.above, agent, idempotent=True)
    target, source = (agent, above) if down else (by or above, agent)
    if source is None:
        raise NotMergeable("nobody works in the files that the tree was made from", hint="Merge it into them instead.")
    return _Merging(workspaces, target, source, lease, terms, cancel or Cancel(), progress).run()
