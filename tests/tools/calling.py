"""How the tests of the working set call a tool."""

from __future__ import annotations

import os
import select
import uuid
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId, SessionId, WorkerId
from agentmesh.domain.text import storable_json
from agentmesh.engine.tool import Tool, ToolContext
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database
from agentmesh.tools.read import Read

ALICE = AgentId(uuid.UUID("aaaaaaaa-0000-4000-8000-000000000001"))
BOB = AgentId(uuid.UUID("bbbbbbbb-0000-4000-8000-000000000002"))
_SESSION = SessionId(uuid.UUID("cccccccc-0000-4000-8000-000000000003"))


_ROOT = uuid.UUID("dddddddd-0000-4000-8000-000000000004")
_SETTINGS = "0" * 64


def context(workdir: Path, agent: AgentId = ALICE, *, step: int = 1, **more: Any) -> ToolContext:
    """Return what a tool knows in these tests; its calls are approved unless a test says otherwise."""
    more.setdefault("approved", True)
    lease = Lease(agent, WorkerId(1), 1, seq=step, ordinal=0)
    return ToolContext(agent, _SESSION, workdir, more.pop("cancel", None) or Cancel(), lease=lease, **more)


def add_agents(conn: psycopg.Connection, *others: AgentId) -> None:
    """Put Alice and Bob, and others without a name of their own, into a session of the database."""
    conn.execute("insert into agentmesh.settings values (%s, '', '[]')", [_SETTINGS])
    conn.execute("insert into agentmesh.sessions (id, workdir, host, os_user) values (%s, '/w', 'h', 'u')", [_SESSION])
    directory = conn.execute(
        "insert into agentmesh.workspaces (session_id, kind, state, path, host, os_user, ready_at)"
        " values (%s, 'shared', 'ready', '/w', 'h', 'u', clock_timestamp()) returning id",
        [_SESSION],
    ).fetchone()
    assert directory is not None
    names = {ALICE: "alice", BOB: "bob"} | {other: f"other-{n}" for n, other in enumerate(others)}
    for agent, parent, name in [(_ROOT, None, "root"), *((agent, _ROOT, name) for agent, name in names.items())]:
        conn.execute(
            "insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, settings_id, forked_at,"
            " workspace_id) values (%s, %s, %s, %s, %s, 'idle', %s, %s, %s)",
            [
                agent,
                _SESSION,
                parent,
                name,
                int(parent is not None),
                _SETTINGS,
                None if parent is None else 0,
                *directory,
            ],
        )


def call(tool: Tool, where: ToolContext | Path, **arguments: Any) -> dict[str, Any]:
    """Run a tool with these arguments."""
    known = where if isinstance(where, ToolContext) else context(where)
    result = tool.run(tool.args(**arguments), known)
    assert result is not None
    return dict(result)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, a zombie too."""
    return os.path.exists(f"/proc/{pid}")


def wait_for_end(pidfds: list[int], seconds: float) -> bool:
    """Wait until all these processes have ended."""
    for pidfd in pidfds:
        ready, _, _ = select.select([pidfd], [], [], seconds)
        if not ready:
            return False
    return True


def read_file(db: Database, where: ToolContext | Path, path: str) -> dict[str, Any]:
    """Run the read tool, and store what the call has seen as its step's commit does."""
    known = where if isinstance(where, ToolContext) else context(where)
    result = call(Read(), known, path=path)
    assert known.lease is not None
    with db.connection() as conn:
        conn.execute(
            "select agentmesh.note_seen(a, %s, %s) from agentmesh.agents a where a.id = %s",
            [known.lease.seq, Jsonb(storable_json(known.seen)), known.agent_id],
        )
    known.seen.clear()
    return result
