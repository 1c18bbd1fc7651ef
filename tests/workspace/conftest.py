"""A session in a Git repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.fixtures.engine import Rig
from tests.fixtures.invariants import violations
from tests.fixtures.repositories import repository


@pytest.fixture
def grove(database_url: str, conn: psycopg.Connection, tmp_path: Path) -> Iterator[Rig]:
    """A session in a repository with changes, without a worker yet; at the end all invariants must hold."""
    made = Rig(database_url, conn, repository(tmp_path / "repo"))
    try:
        yield made
        with psycopg.connect(database_url, autocommit=True) as own:
            assert violations(own) == []
    finally:
        made.close()
