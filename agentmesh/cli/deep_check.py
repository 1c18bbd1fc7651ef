"""``agentmesh doctor --deep``: whether what must hold in the rows does, and who breaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.cli.place import PlaceOptions

if TYPE_CHECKING:
    from agentmesh.store.checks import Invariant

_SHOWN = 20
"""Rows of one invariant that a person is shown; JSON has more."""


def look(place: PlaceOptions) -> list[Invariant]:
    """Look at every row of the database, in one snapshot; nothing where the schema is not this program's.

    Raise what makes that impossible.
    """
    from agentmesh.store import checks, schema

    with place.mesh("doctor", migrate=False) as mesh:
        if mesh.database.run(schema.state, idempotent=True) is not schema.SchemaState.CURRENT:
            return []
        return mesh.database.run(checks.look, idempotent=True)


def rows(invariant: Invariant) -> str:
    """Return who breaks it, a line each."""
    lines = [f"{each.name} of session {str(each.session_id)[:8]}: {each.detail}" for each in invariant.breaches]
    more = len(lines) - _SHOWN
    return "\n".join([*lines[:_SHOWN], *([f"and {more} more; --json shows up to 100"] if more > 0 else [])])
