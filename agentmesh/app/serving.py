"""Make sure that a worker runs a session's agents: find one, start one, or say why none can be started."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.app.background import BackgroundWorker
from agentmesh.app.models import ConfiguredModels
from agentmesh.domain.rows import Session
from agentmesh.store.tx import Database

if TYPE_CHECKING:
    from agentmesh.domain.errors import NoModel
    from agentmesh.domain.ids import AgentId, SessionId


class Obstacle(NamedTuple):
    """Why no worker that this process starts could run a session's agents. Each interface words it in its own way."""

    needs: Sequence[str] = ()
    """Tools and types that only a Python program has: ``tool weather``."""
    no_model: NoModel | None = None
    """Why the model cannot be called from here."""


class ServingResult(NamedTuple):
    """The result of ``Serving.ensure``. If both fields are unset, a worker serves the session, or one is starting."""

    started: bool = False
    """A worker was started just now."""
    obstacle: Obstacle | None = None
    """No worker serves the session, and none was started because of this."""


class Serving:
    """Knows which sessions have a worker, and starts workers in the background."""

    def __init__(self, database: Database, models: ConfiguredModels, background: BackgroundWorker) -> None:
        self._database = database
        self._models = models
        self._background = background

    def ensure(self, session: Session) -> ServingResult:
        """Start a worker in the background if none serves the session, none is starting, and one could run it."""
        provider = self.root_model(session.root_id).partition("/")[0]
        if self.is_served(session.id, provider):
            return ServingResult()
        if obstacle := self.obstacle(session):
            return ServingResult(obstacle=obstacle)
        return ServingResult(self._background.start(session, provider, partial(self.is_served, session.id, provider)))

    def is_served(self, session: SessionId, provider: str) -> bool:
        """Return whether a living worker runs the session's agents whose models are this provider's."""
        from agentmesh.store import workers  # not before the screen shows the session

        return self._database.run(workers.serving, session, provider, idempotent=True)

    def is_starting(self) -> bool:
        """Return whether a worker is starting in the background: it may serve any session, and is not registered."""
        return self._background.is_starting()

    def failure(self) -> str | None:
        """Return why the last worker that this process started has ended by an error; None if none has."""
        return self._background.failure()

    def obstacle(self, session: Session, model: str | None = None) -> Obstacle | None:
        """Return why no worker started from here could run agents with this model, by default the root's."""
        no_model = self._models.obstacle(session, model or self.root_model(session.root_id))
        return Obstacle(session.needs, no_model) if session.needs or no_model else None

    def root_model(self, root: AgentId) -> str:
        """Return the model of a session's root, as ``provider/model``: it decides which worker serves the session."""
        from agentmesh.store import agents

        return self._database.run(agents.get, root, idempotent=True).model
