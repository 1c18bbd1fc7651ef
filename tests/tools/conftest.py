"""The ledger of files as workers have it: in a database, which knows the agents of these tests."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.store.tx import Database
from agentmesh.tools.ledger import FileLedger
from tests.tools.calling import add_agents


@pytest.fixture
def ledger(db: Database, conn: psycopg.Connection) -> FileLedger:
    """A ledger that knows Alice and Bob."""
    add_agents(conn)
    return FileLedger(db)
