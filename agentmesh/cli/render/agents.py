"""Agents and sessions as tables."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from agentmesh.cli.render.figures import activity, moment, state, style
from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.domain.activity import fitted
from agentmesh.domain.figures import count, money
from agentmesh.domain.ids import short
from agentmesh.domain.rows import AgentView, SessionSummary

_AGENT = (
    Column("AGENT"),
    Column("NAME", least=12),
    Column("STATUS"),
    Column("ACTIVITY", least=10, spare=1),
    Column("UNREAD", right=True, spare=4),
    Column("TOOL CALLS", right=True, spare=5),
    Column("TOKENS", right=True, spare=3),
    Column("COST", right=True, spare=2),
    Column("MODEL", least=8, spare=6),
)
_CHANGED = Column("CHANGED", right=True, spare=1)
_SESSION = (
    Column("SESSION"),
    Column("STARTED", spare=1),
    Column("AGENTS", right=True, spare=5),
    Column("RUNNING", right=True, spare=3),
    Column("TOKENS", right=True, spare=6),
    Column("COST", right=True, spare=7),
    Column("STATE", spare=4),
    Column("DIRECTORY", least=12),
    Column("TITLE", least=10, spare=2),
)


def print_agents(agents: Iterable[AgentView], *, sessions: bool) -> None:
    """Print agents, one per line; with ``sessions``, the session of each."""
    shown = list(agents)
    has_changes = any(agent.changed for agent in shown)
    columns = [*([Column("SESSION")] if sessions else []), *_AGENT, *([_CHANGED] if has_changes else [])]
    rows = (
        [*([short(a.session_id)] if sessions else []), *_agent(a), *([a.changed] if has_changes else [])] for a in shown
    )
    print_block(Grid(columns, rows))


def _agent(agent: AgentView) -> list[str | Text]:
    return [
        short(agent.id),
        agent.name,
        Text(state(agent), style(agent)),
        cell(fitted(activity(agent), 40)),
        str(agent.unread),
        str(agent.tool_calls),
        count(agent.tokens),
        money(agent.cost_usd),
        agent.model,
    ]


def print_sessions(sessions: Iterable[SessionSummary]) -> None:
    """Print sessions, one per line."""
    print_block(Grid(_SESSION, map(_session, sessions)))


def _session(session: SessionSummary) -> list[str | Text]:
    state = "ended" if session.ended_at else "open"
    return [
        short(session.id),
        moment(session.created_at),
        str(session.agents),
        str(session.running),
        count(session.tokens),
        money(session.cost_usd),
        f"{state}, pinned" if session.pinned else state,
        session.workdir,
        cell(session.title, width=60),
    ]
