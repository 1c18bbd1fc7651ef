"""``agentmesh doctor --deep``: whether the invariants hold in all rows, and whether the trees agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from agentmesh.cli.checks import naming
from agentmesh.cli.finding import Finding, Health
from agentmesh.cli.place import PlaceOptions
from agentmesh.domain.errors import AgentmeshError

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.config.settings import Settings
    from agentmesh.store.checks import Invariant

_SHOWN = 20
"""Rows of one invariant that people see; JSON has more."""


def deep_checks(place: PlaceOptions, invariants: list[tuple[str, Invariant]]) -> Iterator[Finding]:
    """Yield findings about the rows and trees of each database, and collect the invariants with its name."""
    for settings in place.settings().each_database():
        held: list[Invariant] = []
        yield from naming(settings, _of_database(place, settings, held))
        invariants += [(settings.name_among_several, one) for one in held]


def _of_database(place: PlaceOptions, settings: Settings, invariants: list[Invariant]) -> Iterator[Finding]:
    """Yield findings about one database, and collect its invariants; there are none in another program's schema."""
    from agentmesh.store import schema

    with ExitStack() as opened:
        try:
            mesh = opened.enter_context(place.open(settings, "doctor", migrate=False))
            is_current = mesh.database.run(schema.state, idempotent=True) is schema.SchemaState.CURRENT
        except AgentmeshError as error:
            yield _unchecked("rows", error)
            yield _unchecked("trees", error)
            return
        if not is_current:
            yield Finding(Health.NOTE, "rows", "rows and trees were not checked: the schema is not this program's")
            return
        yield from _rows(mesh, invariants)
        yield from _trees(mesh)


def _rows(mesh: Mesh, invariants: list[Invariant]) -> Iterator[Finding]:
    """Check every row in one snapshot; yield a finding for each invariant, and collect them."""
    from agentmesh.store import checks

    try:
        invariants += mesh.database.run(checks.look, idempotent=True)
    except AgentmeshError as error:
        yield _unchecked("rows", error)
    for one in invariants:
        state = Health.BROKEN if one.breaches else Health.OK
        yield Finding(state, "rows", f"{one.meaning} ({one.name})", _breaches(one))


def _trees(mesh: Mesh) -> Iterator[Finding]:
    """Yield a finding for each difference between rows and directories of this host (I27), or one that all agree."""
    from agentmesh.workspace import repair
    from agentmesh.workspace.results import Fault

    try:
        found = repair.look(mesh.workspaces)
    except AgentmeshError as error:
        yield _unchecked("trees", error)
        return
    for one in found:
        hint = "`agentmesh workspaces --repair` " + one.remedy if one.remedy else one.advice
        # A directory that no row knows may belong to another database with the same data folder.
        state = Health.NOTE if one.fault is Fault.NO_ROW else Health.BROKEN
        yield Finding(state, "trees", one.words, hint)
    if not found:
        yield Finding(Health.OK, "trees", "rows, directories and snapshots of this host agree (I27)")


def _unchecked(about: str, error: AgentmeshError) -> Finding:
    return Finding(Health.BROKEN, about, f"they cannot be checked: {error.message}", error.hint)


def _breaches(invariant: Invariant) -> str:
    """Return the breaches, one per line."""
    lines = [f"{each.name} of session {str(each.session_id)[:8]}: {each.detail}" for each in invariant.breaches]
    more = len(lines) - _SHOWN
    return "\n".join([*lines[:_SHOWN], *([f"and {more:,} more; --json shows up to 100"] if more > 0 else [])])
