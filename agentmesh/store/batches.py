"""Batches: a call of task whose prompt is done once for each item, by one sub-agent each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from psycopg import Connection

from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, scalar
from agentmesh.store.jsonb import jsonb
from agentmesh.store.mailbox import require_size

ITEM: Final = "{item}"
"""The item's place in a batch's prompt; each occurrence is replaced, and no other braces are."""
MOST_ITEMS: Final = 1000
"""How many items a batch may have."""


def batch(conn: Connection, lease: Lease, spec: Mapping[str, Any], side: int | None = None) -> int:
    """Hand the lease's call to one new sub-agent for each item; return how many of them run now.

    ``spec`` is as for ``steps.task``, with ``items``, a list of texts, ``{item}`` in its ``prompt``, and ``room``, the
    characters of text that the call's result may have. ``side`` is how many run side by side; None: as many as the
    session's limits allow when it begins. Others are queued, and the end of an item starts the next one.

    Raise what ``steps.task`` raises for a new sub-agent; BadArgument for items, a prompt or a side that cannot be.
    """
    require_size(str(spec.get("prompt", "")).replace(ITEM, max(spec["items"], key=len, default="")))
    values = {"agent": lease.agent_id, "spec": jsonb(spec), "side": side, **caller(lease)}
    return scalar(conn, statement("batches.batch"), values, int)
