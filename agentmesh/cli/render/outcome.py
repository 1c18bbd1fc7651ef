"""The result of a wait as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentmesh.cli.render.figures import GLYPHS
from agentmesh.domain.states import AgentStatus, WaitStatus
from agentmesh.domain.text import one_line, printable

_RECEIVED = "✓"


def print_outcome(outcome: Mapping[str, Any]) -> None:
    """Print one entry after another, each with its text below; then the outcome, unless all is well."""
    for entry in outcome["results"]:
        print(_headline(entry))
        for field in ("message", "output", "error", "hint"):
            if text := printable(str(entry.get(field) or "")).rstrip():
                note = f"{field}: " if field in ("error", "hint") else ""
                print("\n".join(f"    {line}".rstrip() for line in (note + text).split("\n")))
    if outcome.get("outcome") != "complete":
        print(f"({outcome['outcome']})")


def _headline(entry: Mapping[str, Any]) -> str:
    status = entry.get("status")
    if not status and "message" in entry:
        return f"{_RECEIVED} message   user"  # the only sender that is not an agent
    sign = _RECEIVED if status == WaitStatus.RECEIVED else GLYPHS[AgentStatus(status)] if status else "?"
    name = one_line(str(entry.get("name") or entry.get("agent_id") or "?"), 60)
    id_ = f" ({str(entry['agent_id'])[:8]})" if entry.get("agent_id") and entry.get("name") else ""
    more = f"  and {entry['more']} more unread" if entry.get("more") else ""
    return f"{sign} {status or 'unknown'}  {name}{id_}{more}"
