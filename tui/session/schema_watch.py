"""Stops a screen whose database a newer agentmesh has upgraded: from then on it reads and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.domain.errors import SchemaReplaced
from agentmesh.store import schema, workers

if TYPE_CHECKING:
    from agentmesh.store.tx import Database


class SchemaWatch:
    """Compares the schema with the loaded code, even if its files were replaced since."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schema = schema.needed()
        self._found: schema.Schema | None = None

    def look(self) -> None:
        """Read the schema's revision; raise SchemaReplaced if it is newer than the code."""
        if self._found is None:
            self._found = self._database.run(workers.replaced, self._schema, idempotent=True)
        self.check()

    def check(self) -> None:
        """Raise SchemaReplaced if the last look has found a newer schema."""
        if self._found is not None:
            raise SchemaReplaced(
                f"A newer agentmesh has upgraded the database to schema {self._found}, and this screen stands still: "
                "leave it, and come back with agentmesh -c once agentmesh is upgraded here too",
            )
