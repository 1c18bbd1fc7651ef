"""Commits of results that cost something: they are tried until the database takes them; the model is not asked again.

What a model call used is always recorded, even if its answer is not kept, because it has to be paid for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agentmesh.domain.errors import AgentBusy, DatabaseBusy, DatabaseError, DatabaseUnreachable, Fenced
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Agent
from agentmesh.llm.port import Bill, CallFailed
from agentmesh.store import limits, steps
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database

LOG = logger(__name__)

Result = TypeVar("Result")

Answer = tuple[int, Mapping[str, Any]]
"""A row, and the content of the row to be stored after it, so that one can ask later whether it was stored."""

_AGAIN = 0.5
"""Seconds from one try to the next."""


def end_call(
    database: Database,
    agent: Agent,
    usage: Mapping[str, Any] | None,
    commit: Callable[[], Result],
    is_over: Callable[[], bool],
    answer: Answer | None = None,
) -> Result:
    """Return the result of the commit that ends a model call and records its ``usage`` (None: there was no call).

    It is repeated while it can be. If it is refused for good, the usage is recorded alone.
    """
    what = f"what {agent.name} ({agent.id}) has found"
    try:
        return keep(commit, is_over, what, also_unreachable=answer is not None)
    except (Fenced, AgentBusy, DatabaseError) as error:
        # A commit that may have been made has recorded it: without an answer to look for it is not recorded again.
        if usage is not None and (answer is not None or not isinstance(error, DatabaseUnreachable)):
            book(database, agent, usage, unless=answer)
        raise


def book(database: Database, agent: Agent, usage: Mapping[str, Any], *, unless: Answer | None = None) -> None:
    """Record a model call in its turn, ``unless`` its answer is stored; the agent may be dead.

    If that fails, the log says what is missing.
    """
    try:
        if unless is None or not database.run(steps.is_stored, agent.id, *unless, idempotent=True):
            database.run(steps.book_call, agent.id, {**usage, "turn": agent.turn})
    except DatabaseError as error:
        LOG.warning("a model call of %s is not booked: %s (%s)", agent.id, error, usage)


def may_retry(database: Database, lease: Lease, last: Bill, every: Bill) -> bool:
    """Return whether the budget has room for another attempt of a model call, which is then reserved.

    ``last`` is what the last attempt used, ``every`` what all of them did. If the database does not say, there is none.
    """
    try:
        return database.run(steps.reserve_retry, lease, (last.tokens, last.cost_usd), (every.tokens, every.cost_usd))
    except DatabaseError as error:
        LOG.warning("the model call of %s is not tried again: %s", lease.agent_id, error)
        return False


def may_send(database: Database, lease: Lease) -> float:
    """Return how many seconds limits still let a waiting model call send a request; raise CallFailed if they do not.

    If the database does not say, the call goes on, as it does while the database is away.
    """
    try:
        refused, left = database.run(limits.of_call, lease, idempotent=True)
    except Fenced as gone:
        raise CallFailed(gone.message, hint=gone.hint, kind="limit") from gone
    except DatabaseError as error:
        LOG.warning("whether limits allow the model call of %s is not known: %s", lease.agent_id, error)
        return _AGAIN
    if refused is not None:
        raise CallFailed(refused["error"], hint=refused["hint"], kind="limit", limit=refused["limit"])
    return math.inf if left is None else left


def keep(
    commit: Callable[[], Result], is_over: Callable[[], bool], what: str, *, also_unreachable: bool = False
) -> Result:
    """Return the commit's result; repeat it while a lock or a full disk is in its way, unless ``is_over``.

    ``also_unreachable``: it may also be repeated if nobody knows whether it was made.
    """
    passing = (DatabaseBusy, DatabaseUnreachable) if also_unreachable else (DatabaseBusy,)
    while True:
        try:
            return commit()
        except DatabaseError as error:
            if not isinstance(error, passing) or is_over():
                raise
            LOG.warning("%s is kept, and stored as soon as possible: %s %s", what, error, error.hint)
            time.sleep(_AGAIN)
