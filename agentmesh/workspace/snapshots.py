"""Snapshots around the calls with effects of one step, so that each change has its agent, step and call.

Before a call that may change any file of a shared directory, all files are looked at: what others changed since is not
the agent's. After it they are looked at again. A tool that names the files that it writes costs a look at these only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final, TypeVar

from agentmesh.domain.errors import AgentmeshError, TreeMoved
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.log import logger
from agentmesh.git.facts import TreeSnapshot
from agentmesh.git.place import Place
from agentmesh.store import snapshots, workspaces
from agentmesh.workspace.entries import Entry, entry, refs_in, refs_of, with_others
from agentmesh.workspace.files import WorkspaceFiles
from agentmesh.workspace.roots import Root

LOG = logger(__name__)

_MENTIONED = 3
"""How many left-out files a note names."""
_DIGITS: Final = 12
"""How much of a tree's id is in the name of a snapshot that belongs to no call."""

Done = TypeVar("Done")


class StepSnapshots:
    """The snapshots of one step of one agent. It never raises: a failure becomes a note, once."""

    def __init__(
        self, among: WorkspaceFiles, root: Root, place: Place, session: SessionId, agent: AgentId, seq: int
    ) -> None:
        self._among = among
        self._database = among.database
        self._root = root
        self._place = place
        self._store = among.store(root.workspace, place)
        self._chain = among.chain(root.workspace)
        self._refs = f"{refs_of(session)}{agent}/{seq}"
        self._named: set[str] | None = None
        """The files that the present call has named; None if it may have changed any."""
        self._others: list[Entry] = []
        """What others had changed, to be stored with the result of a call."""
        self._notes: list[str] = []
        self._is_cleared = False

    def begin(self, *, names_files: bool) -> None:
        """Get ready for a call. Unless it ``names_files``, see now what others have changed in a shared directory."""
        self._named = None
        if names_files or self._root.own:
            return
        self._quietly(lambda: self._look(None))

    def writing(self, path: Path) -> None:
        """Look at one file that the present call is about to write."""
        self._named = self._named or set()
        named = os.path.relpath(path, self._place.root)
        if path.is_relative_to(self._place.top):
            self._quietly(lambda: self._look({named}))
            self._named.add(named)

    def end(self, ordinal: int) -> Entry | None:
        """Return what to store with the result of the present call; None if nothing has changed."""
        return self._quietly(lambda: self._after(ordinal))

    def died(self, ordinal: int) -> Entry | None:
        """Return the same for a call that another worker began: all that has changed since counts as its effect."""
        self._named = None
        self._quietly(self._clear)
        return self._quietly(lambda: self._after(ordinal))

    def lost(self, entries: Iterable[Entry]) -> None:
        """Give these snapshots of the step up: they could not be stored, because the agent is killed or another's."""
        self._chain.forget()
        refs = [ref for one in entries for ref in refs_in(one)]
        self._quietly(lambda: self._among.give_up(self._store, self._root.workspace, refs))

    def note(self) -> str:
        """Return a note for the model, once: files that no snapshot holds, or that no snapshot could be taken."""
        said, self._notes = " ".join(self._notes), []
        return said

    def _look(self, paths: Collection[str] | None) -> None:
        """Note what others have changed in these files, or in all."""
        with self._chain.lock, self._store.held():
            before = self._newest() or self._store_first()
            if before is None or self._root.own:
                return
            found = self._take(before, paths)
            if found.tree != before:
                self._others.append(self._kept(found))

    def _after(self, ordinal: int) -> Entry | None:
        made = None
        with self._chain.lock, self._store.held():
            found = self._take(self._newest(), self._named, apart=True)
            if found.unmade is not None:  # what others had changed is a snapshot of its own
                self._others.append(self._kept(found.unmade))
            if found.tree != found.before:
                made = self._kept(found, str(ordinal) if ordinal else "")
        others, self._others = self._others, []
        return with_others(made, others)

    def _newest(self) -> str | None:
        """Return the newest tree. The caller holds the locks: the row must not be older than the files."""
        row = self._database.run(workspaces.get, self._root.workspace, idempotent=True)
        self._among.note_repository(row, self._place)
        return self._chain.at(row.head)

    def _store_first(self) -> str | None:
        """Store what the files are before any snapshot; if another process was first, return its tree."""
        found = self._take(None, None)
        first = entry(found, ref := self._ref(found.tree[:_DIGITS]))
        self._store.keep(ref, found.tree)
        try:  # now: if this worker dies, the next one sees what the call had changed
            self._database.run(snapshots.record, self._root.workspace, "base", first, idempotent=True)
        except TreeMoved:
            self._among.give_up(self._store, self._root.workspace, [ref])
            return self._newest()
        self._chain.add(found.tree)
        return None

    def _clear(self) -> None:
        """Remove refs of this step whose rows a dead worker did not store; once, before this process names any."""
        if not self._is_cleared:
            self._is_cleared = True
            left = [
                ref for ref in self._store.refs(self._refs) if ref == self._refs or ref.startswith(f"{self._refs}.")
            ]
            self._among.give_up(self._store, self._root.workspace, left)

    def _take(self, before: str | None, paths: Collection[str] | None, *, apart: bool = False) -> TreeSnapshot:
        """Take a snapshot, of these files or of all."""
        found = self._store.take(before, None, None if before is None else paths, apart=apart)
        self._tell_left_out(found)
        return found

    def _kept(self, found: TreeSnapshot, suffix: str | None = None) -> Entry:
        """Name a snapshot, by its tree if it is of no call, and note that it is the newest."""
        ref = self._ref(found.tree[:_DIGITS] if suffix is None else suffix)
        self._store.keep(ref, found.tree)
        self._chain.add(found.tree)
        return entry(found, ref)

    def _ref(self, suffix: str) -> str:
        return f"{self._refs}.{suffix}" if suffix else self._refs

    def _tell_left_out(self, found: TreeSnapshot) -> None:
        """Say which files are not in snapshots, unless they were there before the first one."""
        files = {path for path in found.left_out if not path.endswith("/")}
        known, self._chain.left_out = self._chain.left_out, files | (self._chain.left_out or set())
        if known is not None and (new := sorted(files - known)):
            more = f" and {len(new) - _MENTIONED} more" if len(new) > _MENTIONED else ""
            self._notes.append(
                f"Too large or unreadable: {', '.join(new[:_MENTIONED])}{more}; snapshots, undo and merge leave it out."
            )

    def _quietly(self, work: Callable[[], Done]) -> Done | None:
        """Do this; if it fails, say so once and go on: a call never fails because its snapshot does."""
        try:
            done = work()
        except Exception as error:
            known, self._chain.troubled = self._chain.troubled, True
            is_known = isinstance(error, (AgentmeshError, OSError))
            LOG.warning("no snapshot of %s: %s", self._root.path, error, exc_info=not is_known)
            if not known:
                why = error.message if isinstance(error, AgentmeshError) else type(error).__name__
                self._notes.append(f"No snapshot was taken, so this cannot be undone: {why}")
            return None
        self._chain.troubled = False
        return done
