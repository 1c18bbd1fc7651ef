"""What an agent's last turn, or its report of a fixed form, came to: the value, or the error without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import Interrupted, LimitReached, ModelError, UsageError
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.store import agents, forms

if TYPE_CHECKING:
    from agentmesh.api.link import SessionLink
    from agentmesh.domain.rows import Ref


def output_of(link: SessionLink, agent: Ref) -> str:
    """Return the final text of its last turn, "" before the first; raise the error of a turn that ended otherwise."""
    found = link.run(agents.ending, agent.id, idempotent=True)
    if found is None:
        return ""
    kind, content = found
    if kind == Kind.ASSISTANT:
        return str(content.get("text", ""))
    message = f"{agent.name}: {content.get('error') or content.get('text') or 'failed'}"
    hint = str(content.get("hint") or "")
    if kind == Kind.EVENT and content.get("event") == "interrupted":
        raise Interrupted(message, hint=hint)
    raise (LimitReached if content.get("kind") == "limit" else ModelError)(message, hint=hint)


def report_of(link: SessionLink, agent: Ref) -> dict[str, Any]:
    """Return its newest report of a fixed form; raise ModelError, the error of its turn, or UsageError without one."""
    found = link.run(forms.reported, agent.id, idempotent=True)
    if found is None:
        raise UsageError(f"the reports of {agent.name} have no form", hint="Give its fork a schema.")
    if found.result is not None and found.status != "owed":
        return found.result
    if found.status == "failed":
        why = f": {found.refused}" if found.refused else ""
        hint = f"agentmesh log {agent.id} shows what it answered."
        raise ModelError(f"{agent.name}: no valid report{why}", hint=hint)
    if found.status != "owed":
        raise ModelError(f"{agent.name}: no valid report, its task ended as {found.status}")
    status = link.run(agents.get, agent.id, idempotent=True).status
    if status == AgentStatus.IDLE:
        output_of(link, agent)
    hint = "It never will." if status == AgentStatus.DEAD else "Wait for it first: agent.wait()."
    raise UsageError(f"{agent.name} has not reported yet", hint=hint)
