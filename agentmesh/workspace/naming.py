"""The paths of files as people name them, and as trees have them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.store import sessions
from agentmesh.store import workspaces as rows

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.workspace.files import WorkspaceFiles


def named(workspaces: WorkspaceFiles, agent: AgentId, paths: Collection[str], at: Path) -> list[str]:
    """Return these paths relative to the directory where an agent works, as its trees have them.

    They are absolute, or relative to ``at``. If that is no place of the session they are relative to the session's
    directory. A path into that directory means the same file of the agent's own tree. Raise UnknownAgent.
    """
    row = workspaces.database.run(rows.of_agent, agent, idempotent=True)
    session = workspaces.database.run(sessions.get, row.session_id, idempotent=True)
    return [inward(path, at, _roots(session.workdir, row.path)) for path in paths]


def _roots(project: str, own: str | None) -> Sequence[str]:
    return [os.path.realpath(one) for one in (project, own) if one]


def inward(path: str, at: Path, roots: Sequence[str]) -> str:
    """Return a path relative to the last of these resolved directories that it is in, or to the first."""
    place = os.path.realpath(at)
    base = place if any(_is_in(place, root) for root in roots) else roots[0]
    full = _resolved(os.path.join(base, path))
    return os.path.relpath(full, next((root for root in reversed(roots) if _is_in(full, root)), roots[0]))


def _resolved(path: str) -> str:
    """Return a path without links in its folders: a link itself is a file of a tree."""
    folder, name = os.path.split(path.rstrip("/") or "/")
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
