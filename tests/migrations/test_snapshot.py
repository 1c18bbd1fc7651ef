from __future__ import annotations

import os

import pytest

from tests.migrations import snapshot


def test_the_committed_schema_is_that_of_the_newest_revision(database_url, conn):
    """With AGENTMESH_UPDATE_SCHEMA=1 (`make schema`) the file is written anew."""
    if conn.info.server_version // 10000 != snapshot.MAJOR:
        pytest.skip(f"the file is as PostgreSQL {snapshot.MAJOR} prints it")
    schema = snapshot.dump(database_url)
    if os.environ.get("AGENTMESH_UPDATE_SCHEMA") == "1":
        snapshot.FILE.write_text(schema, encoding="utf-8")
    assert snapshot.FILE.read_text(encoding="utf-8") == schema
