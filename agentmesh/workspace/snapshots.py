"""Snapshots around the calls with effects of one step, so that each change has its agent, step and call.

Before a call that may change any file of a shared directory, all files are looked at: what others changed since is not
the agent's. After it they are looked at again. A tool that names the files that it writes costs a look at these only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.log import logger
from agentmesh.git.facts import TreeSnapshot
from agentmesh.git.place import Place
from agentmesh.store import snapshots, workspaces
from agentmesh.workspace.entries import Entry, entry, refs_of
from agentmesh.workspace.files import WorkspaceFiles
from agentmesh.workspace.roots import Root

LOG = logger(__name__)

_MENTIONED = 3
"""How many left-out files a note names."""


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
        self._taken = 0
        self._named: set[str] | None = None
        """The files that the present call has named; None if it may have changed any."""
        self._outside: Entry | None = None
        """What others had changed before the present call."""
        self._notes: list[str] = []
        self._head: str | None = None
        self._is_read = False

    def begin(self, *, names_files: bool) -> None:
        """Get ready for a call. Unless it ``names_files``, see now what others have changed in a shared directory."""
        self._named, self._outside = None, None
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
        """Return the snapshot to store with the result of the present call; None if nothing has changed."""
        return self._quietly(lambda: self._after(ordinal))

    def died(self, ordinal: int) -> Entry | None:
        """Return the same for a call that another worker began: all that has changed since counts as its effect."""
        self._named, self._outside = None, None
        return self._quietly(lambda: self._after(ordinal))

    def lost(self) -> None:
        """Forget the snapshots of this step: they could not be stored, because another worker owns the agent now."""
        self._chain.forget()

    def note(self) -> str:
        """Return a note for the model, once: files that no snapshot holds, or that no snapshot could be taken."""
        said, self._notes = " ".join(self._notes), []
        return said

    def _look(self, paths: Collection[str] | None) -> Entry | None:
        """Note what others have changed in these files, or in all."""
        self._read()
        with self._chain.lock:
            before = self._chain.at(self._head)
            if before is not None and self._root.own:
                return None
            ref = self._ref(f"outside{self._taken or ''}")
            found, is_new = self._taken_as(ref, before, paths)
        if is_new:
            self._record_outside()
            self._outside = entry(found, ref)
        if is_new and before is None:
            self._record_outside("base")  # now: if this worker dies, the next one sees what the call had changed
        return self._outside

    def _after(self, ordinal: int) -> Entry | None:
        self._read()
        with self._chain.lock:
            before = self._chain.at(self._head)
            ref = self._ref(str(ordinal) if self._taken else "")
            found, is_new = self._taken_as(ref, before, self._named, apart=True)
        if found.unmade is not None:  # what others had changed is a snapshot of its own
            self._record_outside()
            self._outside = entry(found.unmade, f"{ref}.unmade")
        if is_new:
            self._taken += 1
            return entry(found, ref, self._outside)
        self._record_outside()
        return None

    def _record_outside(self, kind: str = "outside") -> None:
        """Store what others have changed, because no result will carry it."""
        found, self._outside = self._outside, None
        if found:
            self._database.run(snapshots.record, self._root.workspace, kind, found, idempotent=True)

    def _taken_as(
        self, ref: str, before: str | None, paths: Collection[str] | None, *, apart: bool = False
    ) -> tuple[TreeSnapshot, bool]:
        """Take a snapshot, of these files or of all; name it and note it if anything has changed."""
        found = self._store.take(before, None, None if before is None else paths, apart=apart)
        self._tell_left_out(found)
        if found.unmade is not None:
            self._store.keep(f"{ref}.unmade", found.unmade.tree)
            self._chain.add(found.unmade.tree)
        if found.tree == found.before:
            return found, False
        self._store.keep(ref, found.tree)
        self._chain.add(found.tree)
        return found, True

    def _read(self) -> None:
        """Read the row, once in a step: another process may have moved its head."""
        if not self._is_read:
            row = self._database.run(workspaces.get, self._root.workspace, idempotent=True)
            self._among.note_repository(row, self._place)
            self._head, self._is_read = row.head, True

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

    def _quietly(self, work: Callable[[], Entry | None]) -> Entry | None:
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
