"""Run again all agents of a session whose last turn failed, as after a cap was raised or a server came back."""

from __future__ import annotations

from contextlib import suppress

from agentmesh.domain.errors import AgentBusy, DeadAgent, NothingToRetry
from agentmesh.domain.ids import SessionId
from agentmesh.domain.rows import Ref
from agentmesh.store import person
from agentmesh.store.tx import Database


def retry_failed(database: Database, session: SessionId) -> list[Ref]:
    """Run them again, each in its own commit; return them, the deepest first: a parent then sees its children run."""
    retried = []
    for ref in database.run(person.failed, session, idempotent=True):
        with suppress(AgentBusy, DeadAgent, NothingToRetry):  # somebody was quicker, or its conversation was cleared
            database.run(person.retry, ref.id)
            retried.append(ref)
    return retried
