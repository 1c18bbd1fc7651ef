"""Snapshots in the form that the database takes, and the names of their refs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from agentmesh.domain.ids import SessionId
from agentmesh.git.facts import TreeSnapshot
from agentmesh.store import snapshots

if TYPE_CHECKING:
    from agentmesh.git.store import Store

Entry = dict[str, Any]
"""A snapshot as ``finish_calls`` stores it with a call's result; see ``store.snapshots.entry``."""


def take(store: Store, before: str | None, ref: str, paths: Collection[str] | None = None) -> TreeSnapshot | None:
    """Take a snapshot and name it; return None if nothing has changed since ``before``."""
    if paths is not None and not paths:
        return None
    found = store.take(before, None, paths)
    if found.tree == before:
        return None
    store.keep(ref, found.tree)
    return found


def entry(found: TreeSnapshot, ref: str) -> Entry:
    """Return a snapshot in the form that the database takes."""
    changes = ((one.path, one.status, one.added, one.removed) for one in found.changes)
    return snapshots.entry(found.tree, found.before, ref, changes, found.left_out)


def with_others(made: Entry | None, others: Sequence[Entry]) -> Entry | None:
    """Return what to store with a call: the snapshot that it made, if any, after what others had changed."""
    if not others:
        return made
    return {"changes": [], **(made or {}), "outside": list(others)}


def refs_in(one: Entry) -> list[str]:
    """Return the refs of an entry: its own, and those of what others had changed."""
    return [str(each["ref"]) for each in (one, *one.get("outside", ())) if each.get("ref")]


def refs_of(session: SessionId) -> str:
    """Return the beginning of the names of all refs of a session."""
    return f"refs/agentmesh/{session}/"
