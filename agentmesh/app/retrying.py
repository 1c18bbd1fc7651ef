"""Run the last turn of agents again, as after a cap was raised or a server came back."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from agentmesh.app.each_agent import to_each
from agentmesh.domain.errors import AgentBusy, DeadAgent, NothingToRetry, Refused
from agentmesh.domain.ids import SessionId
from agentmesh.domain.rows import Ref
from agentmesh.store import person
from agentmesh.store.tx import Database


def retry_each(database: Database, agents: Iterable[Ref]) -> tuple[list[Ref], list[Refused]]:
    """Run each agent again, in its own commit; return those that run, and the refusals."""

    def again(ref: Ref) -> list[Ref]:
        database.run(person.retry, ref.id)
        return [ref]

    return to_each(agents, again)


def retry_failed(database: Database, session: SessionId) -> list[Ref]:
    """Run all agents again whose last turn failed, each in its own commit; return them.

    The deepest come first: a parent then sees its children run.
    """
    retried = []
    for ref in database.run(person.failed, session, idempotent=True):
        with suppress(AgentBusy, DeadAgent, NothingToRetry):  # somebody was quicker, or its conversation was cleared
            database.run(person.retry, ref.id)
            retried.append(ref)
    return retried
