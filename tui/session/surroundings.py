"""Facts for the status line that no board has: directory and branch, context left, cost per hour, the wall."""

from __future__ import annotations

from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.text import one_line
from agentmesh.tui.session.git_branch import git_branch

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Session
    from agentmesh.tui.session.state import Board

LOG = logger(__name__)

_SPAN = 600.0
"""Seconds that the cost per hour looks back."""
_LEAST = 30.0
"""Seconds that it needs to have seen."""
_APART = 5.0
"""Seconds between two costs that are kept."""
_FOLDERS = 24


class Surroundings(NamedTuple):
    """Everything is optional: empty or None is not known yet, and not shown."""

    place: str = ""
    """The directory with its branch: ``agentmesh (main)``."""
    context_left: int | None = None
    """Per cent of the model's window that the agent in view has left."""
    rate: str = ""
    """The session's cost in an hour at the pace of the last ten minutes: ``$1.20/h``."""
    walled: bool | None = None
    """Whether approved commands of this session run behind a wall."""
    database: str = ""
    """The name of the session's database, if there are several."""


class CostRate:
    """Follows the cost of a session, board by board."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Decimal]] = deque()

    def take(self, board: Board) -> str:
        """Take a board; return the cost per hour, empty while nothing was spent or too little was seen."""
        now, cost = board.read_at, board.root.view.tree_cost_usd
        if cost is None:
            self._seen.clear()
            return ""
        if not self._seen or now - self._seen[-1][0] >= _APART:
            self._seen.append((now, cost))
        while now - self._seen[0][0] > _SPAN:
            self._seen.popleft()
        began, before = self._seen[0]
        if now - began < _LEAST or cost <= before:
            return ""
        per_hour = (cost - before) * 3600 / Decimal(now - began)
        return f"${per_hour:.2f}/h" if per_hour >= Decimal("0.01") else "<$0.01/h"


def place_of(workdir: Path) -> str:
    """Return the name of a directory with its branch; ``~`` for the home directory."""
    name = "~" if workdir == Path.home() else one_line(workdir.name or str(workdir), _FOLDERS)
    branch = git_branch(workdir)
    return f"{name} ({branch})" if branch else name


def context_left(mesh: Mesh, agent: AgentId, model: str) -> int | None:
    """Return the free part of the model's window, in per cent as ``/context`` counts it; None: no window is known."""
    from agentmesh.store import context

    window = mesh.context_window(model)
    if not window:
        return None
    used = context.total(mesh.database.run(context.filling, agent, idempotent=True)).tokens
    return max(100 - round(100 * used / window), 0)


class SurroundingsReader:
    """Reads the surroundings of one session; ``read`` may take a moment, so it is called on another thread."""

    def __init__(self, mesh: Mesh, session: Session, *, has_files: bool) -> None:
        """``has_files`` says whether the session's files are on this host."""
        self._mesh, self._session, self._has_files = mesh, session, has_files
        self._counted: tuple[AgentId, str] | None = None
        self._left: int | None = None
        self._is_stale = True

    def rows_arrived(self) -> None:
        """Note that the context of the agent in view has changed."""
        self._is_stale = True

    def read(self, agent: AgentId, model: str) -> Surroundings:
        """Return place, wall and context; the context is counted again only after it has changed."""
        if self._is_stale or self._counted != (agent, model):
            self._is_stale, self._counted = False, (agent, model)
            try:
                self._left = context_left(self._mesh, agent, model)
            except AgentmeshError as error:
                LOG.debug("the context of %s cannot be counted: %s", agent, error)
                self._left, self._is_stale = None, True
        workdir = Path(self._session.workdir)
        place = place_of(workdir) if self._has_files else f"{one_line(workdir.name, _FOLDERS)} on {self._session.host}"
        walled = self._mesh.has_walls() if self._has_files else None
        return Surroundings(place, self._left, walled=walled, database=self._mesh.settings.name_among_several)
