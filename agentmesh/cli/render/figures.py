"""Numbers, states, times and endings as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from agentmesh.domain.figures import count, money, plural
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import AgentStatus

GLYPHS = {AgentStatus.RUNNING: "◐", AgentStatus.IDLE: "○", AgentStatus.DEAD: "✗"}
ENDS = {"failed": "▲", "out of budget": "▣", "interrupted": "⏸"}
"""How the last turn of an idle agent ended, if not well: its activity in ``v_agents``, and a glyph."""
STYLES = {AgentStatus.RUNNING: "cyan", AgentStatus.IDLE: "", AgentStatus.DEAD: "red"}


def state(agent: AgentView) -> str:
    """Return ``◐ running``; for an idle agent how its last turn ended: ``▲ failed``, or ``● done`` until seen."""
    if has_ended_badly(agent):
        return f"{ENDS[agent.activity]} {agent.activity}"
    if agent.unseen:
        return "● done"
    return f"{GLYPHS[AgentStatus(agent.status)]} {agent.status}"


def style(agent: AgentView) -> str:
    """Return the colour of its state."""
    if has_ended_badly(agent):
        return "red" if agent.activity == "failed" else "yellow"
    return "green" if agent.unseen else STYLES[AgentStatus(agent.status)]


def activity(agent: AgentView) -> str:
    """Return the agent's activity; "" if its state says it already."""
    return "" if has_ended_badly(agent) else agent.activity


def has_ended_badly(agent: AgentView) -> bool:
    """Whether the agent is idle because its last turn failed, was interrupted or reached a budget."""
    return agent.status == AgentStatus.IDLE and agent.activity in ENDS


def used(agent: AgentView) -> str:
    """Return ``9 tool calls  14k tokens  cost $0.0312``."""
    return f"{plural(agent.tool_calls, 'tool call')}  {count(agent.tokens)} tokens  cost {money(agent.cost_usd)}"


def moment(at: datetime | None) -> str:
    """Return a time in the reader's own zone."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}" if at else ""


def cut_off(content: Mapping[str, object]) -> str:
    """Return why an answer ended before its end; nothing for one that did not."""
    match content.get("finish_reason"):
        case None:
            return ""
        case "length" if "context" in str(content.get("ending")):
            return "cut off: the model's context is full"
        case "length":
            return "cut off at the model's limit of output"
        case "limit":
            return "stopped at the limit of one answer (limits.answer_tokens, limits.answer_bytes)"
        case "content_filter":
            return "cut off by the provider's content filter"
        case other:
            return f"ended by the model server ({other})"
