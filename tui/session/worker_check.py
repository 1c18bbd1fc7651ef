"""Checks that a worker runs the session's agents, and starts one if none does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from agentmesh.domain.errors import AgentmeshError, DatabaseUnreachable, SessionMoved, UnknownSession
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session
    from agentmesh.tui.session.state import Board

_GRACE = 2.5
"""Seconds that a worker may be away; a restart of the database takes less."""
_SHOWN = 5.0
"""Seconds that the sentence about a missing worker stays on the screen."""


class WorkerCheck:
    """Checks one session; used by one thread."""

    def __init__(self, mesh: Mesh, session: Session) -> None:
        self._mesh = mesh
        self._session = session
        self._missed: dict[str, float] = {}  # by provider, since when no worker serves it
        self._told_until = 0.0

    def check(self, board: Board) -> str | None:
        """Return the problem in a sentence; None if every running agent has a worker. Start a worker if that helps."""
        now = time.monotonic()
        wanted = {face.view.model.partition("/")[0]: face.name for face in board.running}
        unserved = [one for one in wanted if not self._mesh.serving.is_served(self._session.id, one)]
        self._missed = {provider: self._missed.get(provider, now) for provider in unserved}
        missed = [provider for provider, since in self._missed.items() if now - since >= _GRACE]
        if not missed:
            return "the worker was gone; another one runs the agents" if now < self._told_until else None
        provider = missed[0]
        if not self._mesh.models.can_use(provider):
            known = self._mesh.settings.providers.get(provider)
            why = f": {known.api_key_env} is not set" if known and known.api_key_env else ""
            return f"no worker runs {wanted[provider]}, and its model provider {provider} cannot be used here{why}"
        if obstacle := self._mesh.serving.obstacle(self._session, f"{provider}/"):
            program = f"that takes a Python program with {', '.join(obstacle.needs)}"
            return f"no worker runs {wanted[provider]}: {obstacle.no_model.message if obstacle.no_model else program}"
        self._mesh.ensure_served(self._session)
        self._told_until = now + _SHOWN
        if failure := self._mesh.serving.failure():
            return f"no worker runs the agents; one that was started has ended: {failure}"
        return "no worker runs the agents; one is starting"


def sentence(error: AgentmeshError) -> str:
    """Return an error as one line; a lost connection, and a deleted session, in words for the screen."""
    if isinstance(error, DatabaseUnreachable):
        return "The database is away; trying again. What you send is kept until it is back."
    if isinstance(error, UnknownSession) and not isinstance(error, SessionMoved):
        return "This session was deleted: /new begins another one, /sessions lists the others."
    return one_line(error.message, 200)
