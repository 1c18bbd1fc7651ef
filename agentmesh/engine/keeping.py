"""Commits of results that cost something: they are tried until the database takes them; the model is not asked again.

What a model call used is always recorded, even if its answer is not kept, because it has to be paid for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agentmesh.domain.errors import DatabaseBusy, DatabaseError, DatabaseUnreachable, Fenced
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Agent
from agentmesh.engine import recording
from agentmesh.llm.port import Bill, CallFailed
from agentmesh.store import limits, steps
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database

LOG = logger(__name__)

Result = TypeVar("Result")

_AGAIN = 0.5
"""Seconds from one try to the next."""


def end_call(
    database: Database,
    agent: Agent,
    usage: Mapping[str, Any] | None,
    commit: Callable[[], Result],
    is_over: Callable[[], bool],
    *,
    idempotent: bool = False,
) -> Result:
    """Return the result of the commit that ends a model call and records its ``usage`` (None: there was no call).

    It is repeated while it can be. If it fails for good, or nobody knows whether it was made, the usage is
    recorded alone; a call that the commit has recorded is not recorded again. ``idempotent``: it may be repeated then.
    """
    what = f"what {agent.name} ({agent.id}) has found"
    try:
        return keep(commit, is_over, what, also_unreachable=idempotent)
    except Exception:
        if usage is not None:
            book(database, agent, usage)
        raise


def book(database: Database, agent: Agent, usage: Mapping[str, Any]) -> None:
    """Record a model call in its turn, unless it is recorded; the agent may be dead.

    If that fails, the log names the missing cost.
    """
    try:
        database.run(steps.book_call, agent.id, {**usage, "turn": agent.turn}, idempotent="nonce" in usage)
    except DatabaseError as error:
        LOG.warning("a model call of %s is not booked: %s (%s)", agent.id, error, usage)


def may_retry(database: Database, lease: Lease, model: str, last: Bill, every: Bill) -> bool:
    """Return whether the budget has room for another attempt of a call of this model, which is then reserved.

    ``last`` is the usage of the last attempt, ``every`` of all attempts. Without the database there is none.
    """
    used = (last.tokens, last.cost_usd), (every.tokens, every.cost_usd)
    try:
        return database.run(steps.reserve_retry, lease, model, *used, recording.unpriced(last))
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
