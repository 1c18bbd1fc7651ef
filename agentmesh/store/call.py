"""How a statement is called: the lease that it carries, and the form of its answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, LiteralString, TypeVar, cast, get_type_hints

from psycopg import Connection
from psycopg.rows import BaseRowFactory, kwargs_row, scalar_row

from agentmesh.domain.errors import BadArgument
from agentmesh.domain.ids import AgentId, WorkerId

Value = TypeVar("Value")
RowType = TypeVar("RowType")


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's right to run an agent, and the tool call that it is answering, if any."""

    agent_id: AgentId
    worker_id: WorkerId
    epoch: int
    seq: int | None = None
    ordinal: int | None = None
    note: str | None = None
    """What the model should know about how its call was read; it becomes part of the result."""

    def call(self, seq: int, ordinal: int | None = None, note: str | None = None) -> Lease:
        """Return the same lease, answering this call (or, without ordinal, calls of this step)."""
        return Lease(self.agent_id, self.worker_id, self.epoch, seq, ordinal, note)


def caller(lease: Lease | None) -> dict[str, int | str | None]:
    """Return the parameters of a statement that takes an ``agentmesh.caller``; without a lease all are null."""
    if lease is None:
        return {"worker": None, "epoch": None, "seq": None, "ordinal": None, "note": None}
    return {
        "worker": lease.worker_id,
        "epoch": lease.epoch,
        "seq": lease.seq,
        "ordinal": lease.ordinal,
        "note": lease.note,
    }


def bigint(number: int, what: str) -> int:
    """Return a whole number that a bigint holds; raise BadArgument, naming ``what``, for any other.

    PostgreSQL would say that it has no such function: psycopg sends a larger number as a numeric. A null is left to the
    verbs, which have words for it.
    """
    given: Any = number  # a program need not have been checked for types
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and -(2**63) <= given < 2**63):
        return number
    raise BadArgument(f"{what} is no whole number below 2**63", hint="Take one that agentmesh has shown.")


def scalar(conn: Connection, query: LiteralString, values: Mapping[str, Any], kind: type[Value]) -> Value:
    """Run a statement that returns one value of this kind, and return it."""
    with conn.cursor(row_factory=scalar_row) as cursor:
        value = cursor.execute(query, values).fetchone()
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value


def typed_row(row_type: type[RowType]) -> BaseRowFactory[RowType]:
    """Return a row factory for this dataclass that makes its StrEnum fields; psycopg alone would leave them as text."""
    enums = _enums(cast("Hashable", row_type))

    def make(**values: Any) -> RowType:
        for name, enum in enums.items():
            values[name] = enum(values[name])
        return row_type(**values)

    return kwargs_row(make)


@cache
def _enums(row_type: Hashable) -> Mapping[str, type[StrEnum]]:
    hints = get_type_hints(row_type)
    return {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, StrEnum)}
