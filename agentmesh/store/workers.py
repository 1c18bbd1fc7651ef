"""Workers: register, claim agents, tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.ids import AgentId, SessionId, WorkerId
from agentmesh.domain.rows import Agent, Attention
from agentmesh.sql import statement
from agentmesh.store.call import scalar, typed_row
from agentmesh.store.schema import Schema


class Identity(NamedTuple):
    """Which worker it is, and what it may run."""

    host: str
    os_user: str
    pid: int
    concurrency: int
    providers: tuple[str, ...]
    """Model providers that it is configured for."""
    serves_any: bool = False
    """Whether it also serves sessions of other hosts and users (containers, shared disks)."""
    session: SessionId | None = None
    """The only session that it serves (a headless run)."""
    endpoints: tuple[str, ...] = ()
    """Its model servers, as sessions name them."""
    offers: tuple[str, ...] = ()
    """Things that it has and sessions may need: ``tool weather``, ``type reviewer`` of a Python program."""


class LocalWorker(NamedTuple):
    """A worker of one host that has not ended, according to its row."""

    pid: int
    id: WorkerId
    age: float
    """Seconds since it registered."""
    is_beating: bool


def join(conn: Connection, me: Identity) -> WorkerId:
    """Register a worker on its LISTEN connection, whose session then holds the lock that shows that it is alive."""
    values = {
        "host": me.host,
        "os_user": me.os_user,
        "pid": me.pid,
        "concurrency": me.concurrency,
        "providers": list(me.providers),
        "serves_any": me.serves_any,
        "session": me.session,
        "offers": list(me.offers),
        "endpoints": list(me.endpoints),
    }
    return WorkerId(scalar(conn, statement("workers.join"), values, int))


def rejoin(conn: Connection, worker: WorkerId) -> bool:
    """Take the lock again on a new LISTEN connection; return False if the worker was declared dead meanwhile."""
    return scalar(conn, statement("workers.rejoin"), {"worker": worker}, bool)


def release(conn: Connection, worker: WorkerId) -> int:
    """End the worker and hand over its agents; return how many."""
    return scalar(conn, statement("workers.release"), {"worker": worker}, int)


def claim(conn: Connection, worker: WorkerId, slots: int, *, waits: bool = True) -> list[Agent]:
    """Claim up to ``slots`` queued agents, the longest queued first, and with ``waits`` any that are inside a wait.

    To find those it reads the whole queue; without ``waits`` it reads only what it claims.
    """
    with conn.cursor(row_factory=typed_row(Agent)) as cursor:
        values = {"worker": worker, "slots": slots, "waits": waits}
        return cursor.execute(statement("workers.claim"), values).fetchall()


def owned(conn: Connection, worker: WorkerId) -> list[Agent]:
    """Return the agents that the worker owns, also the agents of a claim whose answer was lost."""
    with conn.cursor(row_factory=typed_row(Agent)) as cursor:
        return cursor.execute(statement("workers.owned"), {"worker": worker}).fetchall()


def claimable(conn: Connection, worker: WorkerId, slots: int) -> bool:
    """Return whether an agent is left that this worker could claim."""
    return scalar(conn, statement("workers.claimable"), {"worker": worker, "slots": slots}, bool)


def give_back(conn: Connection, worker: WorkerId, epochs: Mapping[AgentId, int]) -> set[AgentId]:
    """Offer to others the agents that the worker has no thread for; return those that it no longer owns."""
    values = {"worker": worker, "ids": list(epochs), "epochs": list(epochs.values())}
    return {AgentId(agent) for (agent,) in conn.execute(statement("workers.give_back"), values)}


def tick(
    conn: Connection,
    worker: WorkerId,
    epochs: Mapping[AgentId, int],
    schema: Schema | None = None,
    *,
    names_all: bool = False,
) -> list[Attention]:
    """Beat, sweep dead workers, and return which of these agents need a look although no NOTIFY came.

    Six entries name no agent: ``fenced`` (this worker was declared dead), ``work`` (something can be claimed), ``cron``
    (``timers.ring_crons`` has something to do), ``owned`` (with ``names_all``: the worker owns more agents than these),
    ``paused`` (models pause) and ``replaced`` (the schema is no longer the given one).
    """
    with conn.cursor(row_factory=class_row(Attention)) as cursor:
        named = {"ids": list(epochs), "epochs": list(epochs.values()), "all": names_all}
        known = {"revision": schema and schema.revision, "code": schema and schema.code}
        values = {"worker": worker, **known, **named}
        return cursor.execute(statement("workers.tick"), values).fetchall()


def replaced(conn: Connection, schema: Schema) -> Schema | None:
    """Return the schema of the database if its tables are newer than this one's, or its code differs."""
    values = {"revision": schema.revision, "code": schema.code}
    row = conn.execute(statement("workers.replaced"), values).fetchone()
    return Schema(*row) if row else None


def attention(conn: Connection, worker: WorkerId, epochs: Mapping[AgentId, int]) -> list[Attention]:
    """Return which of these agents need a look."""
    with conn.cursor(row_factory=class_row(Attention)) as cursor:
        values = {"worker": worker, "ids": list(epochs), "epochs": list(epochs.values())}
        return cursor.execute(statement("workers.attention"), values).fetchall()


def not_waiting(conn: Connection, agents: Sequence[AgentId]) -> list[AgentId]:
    """Return which of these agents are inside no wait."""
    return [AgentId(agent) for (agent,) in conn.execute(statement("workers.not_waiting"), {"agents": list(agents)})]


def serving(conn: Connection, session: SessionId, provider: str) -> bool:
    """Return whether a living worker may run the session's agents that use this provider."""
    return scalar(conn, statement("workers.serving"), {"session": session, "provider": provider}, bool)


def screens(conn: Connection) -> bool:
    """Return whether a screen is open on this database, as far as this user may see."""
    return scalar(conn, statement("workers.screens"), {}, bool)


def beating(conn: Connection, host: str) -> int:
    """Return how many workers of a host are at work."""
    return scalar(conn, statement("workers.beating"), {"host": host}, int)


def of_host(conn: Connection, host: str) -> list[LocalWorker]:
    """Return the workers of a host that have not ended."""
    with conn.cursor(row_factory=class_row(LocalWorker)) as cursor:
        return cursor.execute(statement("workers.of_host"), {"host": host}).fetchall()


def left_alone(conn: Connection, host: str) -> int:
    """Return how many agents the workers of a host leave alone although they could run them."""
    return scalar(conn, statement("workers.left_alone"), {"host": host}, int)


def alive(conn: Connection) -> Sequence[dict[str, Any]]:
    """Return the workers that have not ended."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement("workers.alive")).fetchall()
