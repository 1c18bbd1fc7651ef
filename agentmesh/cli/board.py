"""``agentmesh board``: all agents at a glance, those that need a person first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.all_databases import all_databases
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import agent_data, emit, in_database
from agentmesh.cli.serving import tell_unserved
from agentmesh.cli.talk import say
from agentmesh.domain.attention import Need
from agentmesh.domain.folded_agents import is_folded, resting, silent, silent_note
from agentmesh.domain.ids import short

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.cli.render.board import BoardLine
    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import AgentView


@click.command()
@click.option(
    "-a", "--all", "everywhere", is_flag=True, help="All open sessions: agents to look for, and the newest roots."
)
@click.option("--silent", "silents", is_flag=True, help="Include silent agents.")
@json_option
@place_options()
def board(*, everywhere: bool, silents: bool, as_json: bool, place: PlaceOptions) -> None:
    """Show all agents, those that need you first: asking, failed, done and unseen, running, waiting, idle, dead.

    If a session is large, only the agents that you may look for are shown. In the terminal UI, F12 does so live.
    """
    folded, is_cut = 0, False
    if everywhere and place.session is None:
        lines, is_cut = _everywhere(place)
        if not silents and not as_json:
            count, lines = len(lines), [line for line in lines if not is_folded(line.agent, line.need)]
            folded = count - len(lines)
    else:
        with place.mesh("board") as mesh:
            session = place.find_session(mesh)
            lines, folded = _of_session(mesh, session.id, silents=silents or as_json)
            if not as_json:
                say(f"session {short(session.id)}  {session.title or session.workdir}")
            tell_unserved(mesh, [line.agent for line in lines])
    if as_json:
        emit([_data(line) for line in lines])
    else:
        from agentmesh.cli.render.board import print_board

        print_board(lines)
        if folded:
            say(f"{silent_note(folded)}: --silent")
    if is_cut:
        from agentmesh.store.board import SESSIONS

        say(f"Agents at rest are those of the newest {SESSIONS} open sessions; agentmesh sessions --limit lists more.")


def _of_session(mesh: Mesh, session: SessionId, *, silents: bool) -> tuple[list[BoardLine], int]:
    """Return the lines, and how many silent agents are left out."""
    from agentmesh.store import board as store
    from agentmesh.store import requests

    shown = [one.view for one in mesh.database.run(store.agents, session, idempotent=True)]
    asking = {request.agent_id for request in mesh.database.run(requests.pending, session, idempotent=True)}
    at_rest = resting(shown)
    folded = frozenset() if silents else silent(shown, asking) - at_rest
    hidden = at_rest | folded
    agents = [agent for agent in shown if agent.reaped_at is None and agent.id not in hidden]
    return _lines(mesh, [(agent, agent.id in asking, "") for agent in agents]), len(folded)


def _everywhere(place: PlaceOptions) -> tuple[list[BoardLine], bool]:
    """Return the lines of all open sessions in all databases, and whether a database has more."""
    from agentmesh.store import board as store

    def lines_in(mesh: Mesh) -> tuple[list[BoardLine], bool]:
        found = mesh.database.run(store.everywhere, idempotent=True)
        return _lines(mesh, [(one.view, one.asks, one.session) for one in found]), store.is_cut(found)

    with all_databases(place, "board") as databases:
        answers = databases.ask(lines_in)
        for name, (lines, _) in answers.items():
            tell_unserved(databases.mesh(name), [line.agent for line in lines], one_session=False)
    found = [line._replace(database=name) for name, (lines, _) in answers.items() for line in lines]
    is_cut = any(is_cut for _, is_cut in answers.values())
    return sorted(found, key=lambda line: line.need.rank), is_cut


def _lines(mesh: Mesh, agents: list[tuple[AgentView, bool, str]]) -> list[BoardLine]:
    from agentmesh.cli.render.board import BoardLine
    from agentmesh.store import board as store

    known = mesh.database.run(store.details, [agent.id for agent, _, _ in agents], idempotent=True)
    details = {detail.id: detail for detail in known}
    windows = {model: mesh.context_window(model) for model in {detail.model for detail in known}}
    lines = []
    for agent, asks, session in agents:
        detail = details.get(agent.id)
        window = windows[detail.model] if detail else None
        left = max(1 - detail.context_tokens / window, 0.0) if detail and detail.context_tokens and window else None
        need = Need.of(agent.status, agent.activity, unseen=agent.unseen, asks=asks)
        lines.append(BoardLine(agent, need, detail, left, session))
    return sorted(lines, key=lambda line: line.need.rank)


def _data(line: BoardLine) -> dict[str, object]:
    return {
        **agent_data(line.agent),
        **in_database(line.database),
        "need": line.need.value,
        "since_seconds": round(line.detail.since, 1) if line.detail else None,
        "said": line.detail.said if line.detail else "",
        "conflicts": line.conflicts,
        "model_calls": line.detail.model_calls if line.detail else 0,
        "context_left": round(line.context_left, 3) if line.context_left is not None else None,
    }
