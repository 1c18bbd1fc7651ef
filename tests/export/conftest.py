"""A session whose every row is known, a played one, and what each is exported as."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.export import lanes
from agentmesh.export.writing import Format, write
from agentmesh.store.export import snapshot
from agentmesh.store.tx import Database
from tests.fixtures.engine import Rig, until

FIXED = SessionId(UUID("5e550000-0000-4000-8000-000000000001"))
ROOT, READER, RUNNER = (AgentId(UUID(f"a0000000-0000-4000-8000-00000000000{n}")) for n in (1, 2, 3))
HOSTILE = (
    "\x1b[31mred\x1b[0m <script>alert('pwned')</script> \u202eleft ```\n# heading\n```` [x](javascript:alert(1)) &amp;"
)

Exported = Callable[..., str]


@pytest.fixture
def fixed(conn: psycopg.Connection) -> SessionId:
    """The session of fixed.sql."""
    conn.execute(Path(__file__).with_name("fixed.sql").read_text(encoding="utf-8"))
    return FIXED


@pytest.fixture
def exported(db: Database) -> Exported:
    """``exported(session, "md")`` returns a session as text; times are UTC."""

    def export(session: SessionId, name: str, **options: Any) -> str:
        out = io.StringIO()
        write(db, session, out, Format(name), **{"secrets": (), "zone": UTC, **options})
        return out.getvalue()

    return export


@pytest.fixture
def timeline(db: Database) -> Callable[..., lanes.Timeline]:
    """``timeline(session, agent)`` reads a time line."""

    def read(session: SessionId, agent: AgentId | None = None) -> lanes.Timeline:
        with db.connection() as conn, snapshot(conn, session, 60) as snap:
            return lanes.read(snap, agent)

    return read


patient = pytest.mark.timeout(180)
"""For what starts a browser, or workers as the first in its process: a busy machine takes its time."""


def played(rig: Rig, prompt: str) -> SessionId:
    """Play the rig's session to its end."""
    rig.prompt(prompt)
    busy = "select count(*) from agentmesh.agents where status = 'running' and not external"
    until(lambda: rig.one(busy) == 0, "rest", 120)
    return SessionId(rig.one("select session_id from agentmesh.agents where id = %s", rig.root))


def objects(text: str) -> list[dict[str, Any]]:
    """Return the rows of an export as JSON lines."""
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def of_type(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the rows of one type."""
    return [row for row in rows if row["type"] == name]
