"""Snapshots of the files that the calls of one step changed, stored with the results of the calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentmesh.domain.parts import WRITING
from agentmesh.engine.tool import ToolContext
from agentmesh.engine.tool_run import ReadyCall, Result
from agentmesh.store.call import Lease
from agentmesh.workspace.roots import Root
from agentmesh.workspace.snapshots import StepSnapshots
from agentmesh.workspace.workspaces import Workspaces


class Effects:
    """The snapshots of one step; nothing is looked at before its first call with effects."""

    def __init__(self, workspaces: Workspaces | None, root: Root, lease: Lease, context: ToolContext) -> None:
        self._workspaces = workspaces
        self._root = root
        self._lease = lease
        self._context = context
        self._step: StepSnapshots | None = None
        self._is_open = False
        self._reading: set[int] = set()
        """Ordinals of commands that nobody approved: their wall lets them change nothing."""
        self.entries: dict[int, dict[str, Any]] = {}
        """Snapshots that are not stored yet, by ordinal."""

    def before(self, ready: ReadyCall) -> ReadyCall:
        """Return a call that is about to run, with a context that hears which files it writes."""
        if ready.tool.name == "bash" and not ready.context.approved:
            self._reading.add(ready.call.ordinal)
            return ready
        step = self._opened()
        if step is not None:
            step.begin(names_files=ready.tool.name in WRITING)
        writing = self._writing(ready.context.own_lease, step)
        return replace(ready, context=replace(ready.context, writing=writing))

    def after(self, ordinal: int, result: Result) -> Result:
        """Take the snapshot of a call that has run; return its result, with a note if the model should know something.

        Call it too if it failed or was stopped: its changes until then count.
        """
        step = None if ordinal in self._reading else self._opened()
        return result if step is None else self._kept(step, ordinal, step.end(ordinal), result)

    def died(self, ordinal: int, result: Result) -> Result:
        """Do the same for a call that another worker had begun."""
        step = self._opened()
        return result if step is None else self._kept(step, ordinal, step.died(ordinal), result)

    def stored(self) -> None:
        """Note that the snapshots are stored."""
        entries, self.entries = self.entries, {}
        paths = frozenset(str(path) for entry in entries.values() for path, *_ in entry["changes"])
        if paths and self._workspaces:
            self._workspaces.stored(self._root, self._context.agent_id, paths)

    def lost(self) -> None:
        """Note that they will not be: the agent was killed, or another worker owns it now."""
        entries, self.entries = self.entries, {}
        if entries and self._step:
            self._step.lost(entries.values())

    def _kept(self, step: StepSnapshots, ordinal: int, entry: dict[str, Any] | None, result: Result) -> Result:
        if entry is not None:
            self.entries[ordinal] = entry
        said = step.note()
        return {**result, "note": " ".join(filter(None, (result.get("note"), said)))} if said else result

    def _opened(self) -> StepSnapshots | None:
        if not self._is_open and self._workspaces:
            context, seq = self._context, self._lease.seq or 0
            self._step = self._workspaces.step(self._root, context.session_id, context.agent_id, seq)
        self._is_open = True
        return self._step

    def _writing(self, lease: Lease, step: StepSnapshots | None) -> Callable[[Path], None]:
        among, root = self._workspaces, self._root

        def writing(path: Path) -> None:
            if among and root.own is None and among.settings.leases:
                among.require_lease(root, lease, os.path.relpath(path, root.path))
            if step is not None:
                step.writing(path)

        return writing
