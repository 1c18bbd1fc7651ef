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
    Column("NAME", least=12, keeps_end=True),
    Column("STATUS"),
    Column("ACTIVITY", least=10, spare=1),
    Column("UNREAD", right=True, spare=4),
    Column("TOOL CALLS", right=True, spare=5),
    Column("TOKENS", right=True, spare=3),
    Column("COST", right=True, spare=2),
    Column("MODEL", least=8, spare=6),
)
_CHANGED = Column("CHANGED", right=True, spare=1)
_DATABASE = Column("DATABASE")
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


def print_agents(agents: Iterable[tuple[str, AgentView]], *, sessions: bool) -> None:
    """Print agents with their databases, one per line; with ``sessions``, the session of each."""
    shown = list(agents)
    several = any(name for name, _ in shown)
    has_changes = any(agent.changed for _, agent in shown)
    columns = [
        *([_DATABASE] if several else []),
        *([Column("SESSION")] if sessions else []),
        *_AGENT,
        *([_CHANGED] if has_changes else []),
    ]
    rows = (
        [
            *([name] if several else []),
            *([short(a.session_id)] if sessions else []),
            *_agent(a),
            *([a.changed] if has_changes else []),
        ]
        for name, a in shown
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


def print_sessions(sessions: Iterable[tuple[str, SessionSummary]]) -> None:
    """Print sessions with their databases, one per line; a single database has no name."""
    shown = list(sessions)
    several = any(name for name, _ in shown)
    columns = [*_SESSION[:1], *([_DATABASE] if several else []), *_SESSION[1:]]
    rows = (
        [first, *([name] if several else []), *rest] for name, session in shown for first, *rest in [_session(session)]
    )
    print_block(Grid(columns, rows))


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
