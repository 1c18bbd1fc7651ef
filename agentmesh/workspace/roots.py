"""The directory in which an agent's tools work, as they need to know it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID


@dataclass(frozen=True, slots=True)
class OwnTree:
    """A tree of an agent's own. It stands for a directory of the user's, and takes its files' history from there."""

    top: Path
    """All that the agent may change; its root is this directory, or a folder of it."""
    root: Path
    project: Path
    """The session's directory, resolved: the agent's root stands for it."""
    checkout: Path
    """The whole working tree of the user that the session's directory is in; commands of the agent only read it."""
    repository: Path
    """The user's repository, which they only read too."""

    def instead_of(self, path: str) -> str | None:
        """Return where a path of the user's checkout is in this tree, relative to the root; None for other paths."""
        path = os.path.normpath(path)
        for theirs, ours in ((self.project, self.root), (self.checkout, self.top)):
            above = str(theirs)
            if path == above or path.startswith(above.rstrip("/") + "/"):
                return os.path.relpath(os.path.join(ours, os.path.relpath(path, above)), self.root)
        return None

    @property
    def read_only(self) -> tuple[str, ...]:
        """What the agent's commands must not change, whatever the settings let others write."""
        return (str(self.checkout), str(self.repository))


@dataclass(frozen=True, slots=True)
class Root:
    """Where an agent works."""

    workspace: UUID
    path: Path
    """The root of its workspace: relative paths are below it."""
    own: OwnTree | None = None
    """Its own tree; None if it shares the session's directory."""
