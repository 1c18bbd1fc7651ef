"""Boards in few lines, without a database."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import AgentView, Request, Row, Session
from agentmesh.domain.states import AgentStatus, Kind, PermissionMode
from agentmesh.tui.session.state import AgentFace, Board, Waiting
from agentmesh.tui.session.tasks import Task, TaskMark

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SESSION = SessionId(uuid.UUID(int=1))


def id_of(name: str) -> AgentId:
    """Return the id of the agent with this name; always the same."""
    return AgentId(uuid.uuid5(uuid.NAMESPACE_OID, name))


def face(name: str, parent: str | None = "root", status: str = "idle", **more: Any) -> AgentFace:
    """Return an agent's face; ``more`` are fields of the face or of its view."""
    of_face = {key: more.pop(key) for key in list(more) if key in AgentFace._fields}
    view: dict[str, Any] = {
        "id": id_of(name),
        "session_id": SESSION,
        "parent_id": id_of(parent) if parent else None,
        "name": name,
        "path": name,
        "depth": 1 if parent else 0,
        "status": AgentStatus(status),
        "activity": "",
        "unread": 0,
        "model": "demo/demo",
        "worker_id": None,
        "external": False,
        "tool_calls": 0,
        "tokens": 0,
        "cost_usd": Decimal(0),
        "tree_tokens": 0,
        "tree_cost_usd": Decimal(0),
        "created_at": NOW,
        "died_at": NOW if status == "dead" else None,
        "reaped_at": None,
        **more,
    }
    return AgentFace(AgentView(**view), None, **of_face)


def request(agent: str, tool: str = "bash", arguments: Any = None, **more: Any) -> Request:
    """Return an approval that an agent asks for; with ``question`` a question."""
    number = more.pop("number", 1)
    values: dict[str, Any] = {
        "id": uuid.uuid5(uuid.NAMESPACE_URL, f"{agent} {number}"),
        "session_id": SESSION,
        "agent_id": id_of(agent),
        "name": agent,
        "path": agent if agent == "root" else f"root/{agent}",
        "kind": "question" if "question" in more else "approval",
        "tool": "ask_user" if "question" in more else tool,
        "arguments": arguments if arguments is not None else {"command": "git push", "timeout": 120.0},
        "reason": "" if "question" in more else "it is not a known read-only command",
        "rules": [] if "question" in more else [{"effect": "allow", "tool": tool, "pattern": "git push *"}],
        "question": None,
        "options": None,
        "agents": None,
        "state": "pending",
        "asked_at": NOW + timedelta(seconds=number),
        "answer": None,
        "answered_at": None,
        "answered_by": None,
        **more,
    }
    return Request(**values)


def asking(name: str, *requests: Request, parent: str | None = "root", **more: Any) -> AgentFace:
    """Return the face of an agent that asks a person; without requests for one approval."""
    return face(name, parent, "running", requests=requests or (request(name),), **more)


def board(*faces: AgentFace, read_at: float = 0.0, tasks: Iterable[Task] = (), **session: Any) -> Board:
    """Return a board of a root (unless given) and these."""
    everybody = faces if any(one.name == "root" for one in faces) else (face("root", None), *faces)
    values: dict[str, Any] = {
        "id": SESSION,
        "title": "",
        "workdir": "/tmp",
        "host": "host",
        "os_user": "user",
        "root_id": id_of("root"),
        "permission_mode": PermissionMode.ASK,
        "created_at": NOW,
        "ended_at": None,
        **session,
    }
    return Board.of(Session(**values), everybody, read_at, tasks)


def task(child: str, key: str = "1.0", parent: str = "root", status: str | None = None, **figures: Any) -> Task:
    """Return a task of a step in which one runs."""
    values = {"tool_calls": 0, "tokens": 0, "seconds": 0.0, **figures}
    return Task(id_of(parent), key, id_of(child), TaskMark.of(status), **values)


def waiting(*targets: str, received: tuple[str, ...] = (), left: float = 60.0) -> Waiting:
    """Return a wait for these agents; without any, for a message from anyone."""
    return Waiting(tuple(map(id_of, targets)) if targets else None, frozenset(map(id_of, received)), left)


def row(seq: int, kind: Kind, **content: Any) -> Row:
    """Return a row of the root's transcript."""
    return Row(id_of("root"), seq, kind, content)
