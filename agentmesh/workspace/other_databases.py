"""Which workspaces the other databases of a mesh know: their directories are among ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID


class OtherDatabases(NamedTuple):
    """What the other databases have answered; a mesh with one database has none."""

    known: Mapping[UUID, str]
    """The name of the database that knows a workspace."""
    silent: tuple[str, ...] = ()
    """Databases that did not answer: each directory may be theirs."""
    here: str = ""
    """The name of the database that was not asked."""


def no_other_databases() -> OtherDatabases:
    """There is no other database."""
    return OtherDatabases({})
