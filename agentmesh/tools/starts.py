"""Which agents a call would start, before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.fan_out import Start
from agentmesh.engine.tool import ToolContext
from agentmesh.tools import compact
from agentmesh.tools.typed import Delegation, type_of


def starts(delegation: Delegation, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Start | None:
    """Return the agents that a call of ``fork`` or ``task`` would start; None for a call that starts none."""
    if tool == "fork":
        name, items = arguments.get("type"), None
        seen = arguments.get("context") or compact.context_of_forks(context.definitions) or ("none" if name else "all")
    elif tool == "task" and arguments.get("agent_id") is None:
        name, items, seen = arguments.get("subagent_type"), arguments.get("items"), "none"
    else:
        return None
    kind = type_of(delegation, name, context.project) if name else None
    model = arguments.get("model") or (kind.model if kind else None)
    if model:
        with suppress(AgentmeshError):  # not configured: the call itself is refused
            model = delegation.model_name(model)
    told = [arguments.get("prompt"), arguments.get("system_prompt") or (kind.system_prompt if kind else None)]
    size = sum(len(text.encode()) for text in told if text) + max(
        (len(item.encode()) for item in items or ()), default=0
    )
    return Start(len(items) if items else 1, model, size, inherits=seen != "none")
