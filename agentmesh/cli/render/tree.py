"""The tree of agents: as a table with one line per agent, and as nested data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from agentmesh.cli.render.data import agent_data
from agentmesh.cli.render.figures import activity, state, style
from agentmesh.cli.render.screen import Column, Grid, cell
from agentmesh.domain.activity import fitted
from agentmesh.domain.figures import count, money, plural
from agentmesh.domain.folded_agents import resting, silent
from agentmesh.domain.ids import AgentId, short
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import AgentStatus

_Children = dict[AgentId | None, list[AgentView]]


_DOING = 40
"""Characters for an agent's activity."""
_NAME, _ID, _STATE, _ROW = Column(least=16, keeps_end=True), Column(), Column(), Column()
_CHANGED = Column(right=True, spare=1)
_REST = (
    Column(least=12, spare=1),
    Column(right=True, spare=4),
    Column(right=True, spare=3),
    Column(right=True, spare=2),
)


def tree_table(
    agents: Sequence[AgentView],
    *,
    ids: bool = False,
    everything: bool = False,
    silents: bool = False,
    rows: Mapping[AgentId, int] | None = None,
) -> Grid:
    """Return the tree, one line per agent, without reaped ones; with ``ids``, the beginnings of their ids too.

    Sub-agents whose task is over are included, dimmed, only with ``everything``; silent agents with that or with
    ``silents``. ``rows`` has each agent's newest row at the time that is shown.
    """
    has_changes = any(agent.changed for agent in agents)
    rest = [*_REST, *([_CHANGED] if has_changes else [])]
    columns = [_NAME, *([_ID] if ids else []), _STATE, *([_ROW] if rows else []), *rest]
    cells = _cells(agents, ids, _hidden(agents, everything=everything, silents=silents), rows)
    return Grid(columns, ([*row, agent.changed] if has_changes else row for row, agent in cells))


def _cells(
    agents: Sequence[AgentView], ids: bool, hidden: Collection[AgentId], rows: Mapping[AgentId, int] | None
) -> Iterator[tuple[list[str | Text], AgentView]]:
    at_rest = resting(agents)
    for guide, agent in _lines(agents, hidden):
        shade = "dim" if agent.id in at_rest else style(agent)
        unread = f"{agent.unread} unread" if agent.unread else ""
        shown = fitted(activity(agent), _DOING - len(unread) - 2 if unread else _DOING)
        doing = ", ".join(filter(None, [shown, unread]))
        name = Text.assemble((guide, "dim"), (agent.name, "bold" if agent.status == AgentStatus.RUNNING else shade))
        row: list[str | Text] = [
            name,
            *([Text(short(agent.id), "dim")] if ids else []),
            Text(state(agent), shade),
            *([Text(f"row {rows[agent.id]}", "dim")] if rows else []),
            cell(doing, "dim", _DOING),
            plural(agent.tool_calls, "tool call"),
            f"{count(agent.tokens)} tokens",
            money(agent.cost_usd),
        ]
        yield row, agent


def tree_data(
    agents: Sequence[AgentView],
    *,
    everything: bool = False,
    rows: Mapping[AgentId, int] | None = None,
    trees: Mapping[AgentId, tuple[str, str | None]] | None = None,
) -> list[dict[str, Any]]:
    """Return the roots, each with its ``children``, as in ``tree_table``, with silent agents.

    With ``rows``, the ``seq`` of each too; with ``trees``, the Git tree of its files and the ref that keeps it.
    """
    children = _by_parent(agents, _hidden(agents, everything=everything, silents=True))

    def nested(agent: AgentView) -> dict[str, Any]:
        newest: dict[str, Any] = {} if rows is None else {"seq": rows[agent.id]}
        if trees is not None:
            newest["tree"], newest["ref"] = trees.get(agent.id, (None, None))
        return {**agent_data(agent), **newest, "children": [nested(child) for child in children[agent.id]]}

    return [nested(agent) for agent in children[None]]


def _hidden(agents: Sequence[AgentView], *, everything: bool, silents: bool) -> Collection[AgentId]:
    if everything:
        return frozenset()
    return resting(agents) if silents else resting(agents) | silent(agents)


def _by_parent(agents: Sequence[AgentView], hidden: Collection[AgentId]) -> _Children:
    """Return the agents below each parent; a reaped parent is replaced by its nearest ancestor that is not reaped."""
    known = {agent.id: agent for agent in agents}
    children: _Children = defaultdict(list)
    for agent in agents:
        if agent.reaped_at is None and agent.id not in hidden:
            parent = agent.parent_id
            while parent in known and known[parent].reaped_at is not None:
                parent = known[parent].parent_id
            children[parent].append(agent)
    return children


def _lines(agents: Sequence[AgentView], hidden: Collection[AgentId]) -> Iterator[tuple[str, AgentView]]:
    """Yield each agent with the tree lines that lead to it."""
    children = _by_parent(agents, hidden)

    def below(parent: AgentId | None, indent: str) -> Iterator[tuple[str, AgentView]]:
        for agent in children[parent]:
            last = agent is children[parent][-1]
            branch = "" if parent is None else "└─ " if last else "├─ "
            yield indent + branch, agent
            deeper = "" if parent is None else "   " if last else "│  "
            yield from below(agent.id, indent + deeper)

    yield from below(None, "")
