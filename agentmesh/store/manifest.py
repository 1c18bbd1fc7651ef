"""What a schema consists of: the list of names and definitions that a revision stands for, and what differs from it.

The lists are written beside the migrations, one file for each revision that a database of a release can have. Owners,
rights, rows and other schemas are in none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from psycopg import Connection

from agentmesh.sql import statement

REVISION = "revision"
"""The name under which a list has its revision."""

_WHOLES = ("table ", "view ", "type ")


def live(connection: Connection) -> dict[str, str]:
    """Return the list of the database, of one instant; UndefinedTable where it has no revision."""
    return dict(connection.execute(statement("health.objects")).fetchall())


def stored(file: Path) -> dict[str, str] | None:
    """Return the list in a file; None if there is no such file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    parts = [line.partition(" = ") for line in lines if not line.startswith("#")]
    return {name: definition for name, _, definition in parts}


def differences(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Say of each thing that differs what it is and how; an index more than wanted is the owner's own matter.

    A table that is missing, or one too many, is named without its columns.
    """
    whole = {name.partition(" ")[2] for name in wanted.keys() ^ found.keys() if name.startswith(_WHOLES)}
    missing = [name for name in wanted if name not in found and _owner(name) not in whole]
    changed = [name for name in wanted if found.get(name, wanted[name]) != wanted[name]]
    more = [
        name for name in found if name not in wanted and not name.startswith("index ") and _owner(name) not in whole
    ]
    return [
        *(f"{name} is missing" for name in sorted(missing)),
        *(f"{name} differs" for name in sorted(changed)),
        *(f"{name} is one too many" for name in sorted(more)),
    ]


def _owner(name: str) -> str:
    """Return the table of ``column table.name``; nothing for what stands for itself."""
    owner, dot, _ = name.partition(" ")[2].partition(".")
    return owner if dot else ""
