"""JSON on stdout: one value per line, without characters that a terminal would act on."""

from __future__ import annotations

import sys
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.domain.rows import AgentView, Request, SessionSummary


def emit(value: Any) -> None:
    """Print a value as one line of JSON, at once."""
    print(dumps(value), flush=True)


def dumps(value: Any) -> str:
    """Return one line of JSON, in ASCII unless the terminal's encoding is a Unicode one."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return jsontext.line(value, ascii_only="utf" not in encoding)


def agent_data(agent: AgentView) -> dict[str, Any]:
    """Return an agent as ``ps --json`` prints it."""
    return {
        "agent_id": agent.id,
        "name": agent.name,
        "parent_id": agent.parent_id,
        "session_id": agent.session_id,
        "path": agent.path,
        "depth": agent.depth,
        "status": agent.status,
        "activity": agent.activity,
        "unseen": agent.unseen,
        "unread": agent.unread,
        "model": agent.model,
        "subagent_type": agent.subagent_type,
        "clean": agent.clean,
        "silent": agent.silent,
        "external": agent.external,
        "worker_id": agent.worker_id,
        "tool_calls": agent.tool_calls,
        "tokens": agent.tokens,
        "cost_usd": agent.cost_usd,
        "tree_tokens": agent.tree_tokens,
        "tree_cost_usd": agent.tree_cost_usd,
        "workspace": agent.workspace,
        "lines_added": agent.lines_added,
        "lines_removed": agent.lines_removed,
        "merged": agent.merged,
        "created_at": agent.created_at,
        "died_at": agent.died_at,
        "reaped_at": agent.reaped_at,
    }


def request_data(request: Request) -> dict[str, Any]:
    """Return a request as ``answer --json`` prints it."""
    return {
        "request_id": request.id,
        "session_id": request.session_id,
        "agent_id": request.agent_id,
        "name": request.name,
        "path": request.path,
        "kind": request.kind,
        "tool": request.tool,
        "arguments": request.arguments,
        "reason": request.reason,
        "rules": request.rules,
        "question": request.question,
        "options": request.options,
        "agents": request.agents,
        "state": request.state,
        "asked_at": request.asked_at,
        "answer": request.answer,
        "answered_at": request.answered_at,
        "answered_by": request.answered_by,
    }


def in_database(name: str) -> dict[str, str]:
    """Return the key that says in which of several databases something is; nothing if there is only one."""
    return {"database": name} if name else {}


def session_data(session: SessionSummary) -> dict[str, Any]:
    """Return a session as ``sessions --json`` prints it."""
    return {
        "session_id": session.id,
        "title": session.title,
        "workdir": session.workdir,
        "created_at": session.created_at,
        "ended_at": session.ended_at,
        "active_at": session.active_at,
        "pinned": session.pinned,
        "agents": session.agents,
        "running": session.running,
        "tokens": session.tokens,
        "cost_usd": session.cost_usd,
    }
