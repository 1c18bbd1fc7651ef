"""``agentmesh doctor --deep``: whether the invariants hold in all rows, and which rows break them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.cli.place import PlaceOptions

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings
    from agentmesh.store.checks import Invariant
    from agentmesh.workspace.results import TreeFinding

_SHOWN = 20
"""Rows of one invariant that people see; JSON has more."""


def look(place: PlaceOptions, settings: Settings) -> list[Invariant]:
    """Check every row of the database, in one snapshot; return an empty list if the schema is not this program's.

    Raise the error that makes the check impossible.
    """
    from agentmesh.store import checks, schema

    with place.open(settings, "doctor", migrate=False) as mesh:
        if mesh.database.run(schema.state, idempotent=True) is not schema.SchemaState.CURRENT:
            return []
        return mesh.database.run(checks.look, idempotent=True)


def files(place: PlaceOptions, settings: Settings) -> list[TreeFinding]:
    """Return what is wrong between rows and the directories of this host (I27); look at nothing if the schema differs.

    Raise the error that makes the look impossible.
    """
    from agentmesh.store import schema
    from agentmesh.workspace import repair

    with place.open(settings, "doctor", migrate=False) as mesh:
        if mesh.database.run(schema.state, idempotent=True) is not schema.SchemaState.CURRENT:
            return []
        return repair.look(mesh.workspaces)


def rows(invariant: Invariant) -> str:
    """Return the breaches, one per line."""
    lines = [f"{each.name} of session {str(each.session_id)[:8]}: {each.detail}" for each in invariant.breaches]
    more = len(lines) - _SHOWN
    return "\n".join([*lines[:_SHOWN], *([f"and {more} more; --json shows up to 100"] if more > 0 else [])])
