"""``agentmesh wait``: watch until agents rest, or be an agent that waits."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.address import find_agent
from agentmesh.cli.options import Place, json_option, place_options
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.stopping import stoppable
from agentmesh.domain.errors import DatabaseUnreachable, Interrupted
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Agent, Ref
from agentmesh.domain.states import AgentStatus, Kind, WaitOutcome

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.cli.cursors import Cursors

_TICK = 2.0
"""Seconds after which is looked although nothing was heard."""
_LONGEST = 86_400.0
"""Seconds; the most that an agent's own wait may last."""
_SETTLE = 10.0
"""Seconds that an interrupted wait is given to end."""

Entry = dict[str, Any]


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Give up after so long; exit code 3.")
@click.option("--as", "waiter", metavar="AGENT", help="This agent waits, and takes the messages that end its wait.")
@json_option
@place_options()
def wait(agents: tuple[str, ...], *, timeout: float | None, waiter: str | None, as_json: bool, place: Place) -> int:
    """Wait until AGENTS (all of the session, if none is named) are idle or dead, and print how each ended.

    Nothing is consumed. With --as it is that agent's own wait: without AGENTS for a message from anyone, else for each
    of them; what it takes becomes part of its conversation.
    """
    with place.mesh("wait") as mesh:
        if waiter is None:
            outcome = _watch(mesh, place, agents, timeout)
        else:
            outcome = _wait_as(mesh, place, waiter, agents, timeout)
    if as_json:
        emit(outcome)
    else:
        from agentmesh.cli.render.outcome import print_outcome

        print_outcome(outcome)
    if outcome["outcome"] == WaitOutcome.INTERRUPTED:
        raise Interrupted("the wait was interrupted")
    return 3 if outcome["outcome"] == WaitOutcome.TIMEOUT else 0


def _watch(mesh: Mesh, place: Place, names: Sequence[str], timeout: float | None) -> dict[str, Any]:
    """Look on until the agents rest."""
    from agentmesh.cli.wakes import Wakes

    found = [find_agent(mesh, place, name) for name in names]
    listed = {ref.id: ref for ref, _ in found}
    sessions = {session.id for _, session in found} or {place.find_session(mesh).id}
    deadline = time.monotonic() + timeout if timeout is not None else math.inf
    with Wakes(mesh, sessions) as wakes:
        while True:
            try:
                entries = _entries(mesh, sessions, list(listed))
            except DatabaseUnreachable as error:
                if time.monotonic() >= deadline:
                    raise
                wakes.endure(error)
                continue
            left = deadline - time.monotonic()
            if done := all(entry["status"] != AgentStatus.RUNNING for entry in entries):
                break
            if left <= 0:
                break
            wakes.wait(min(_TICK, left))
    return {"outcome": WaitOutcome.COMPLETE if done else WaitOutcome.TIMEOUT, "results": entries}


def _entries(mesh: Mesh, sessions: set[SessionId], listed: Sequence[AgentId]) -> list[Entry]:
    """Return how each agent stands; without a list, how all do whom a worker runs."""
    from agentmesh.store import agents

    if listed:
        standing: list[Agent] = [mesh.database.run(agents.get, agent, idempotent=True) for agent in listed]
        return [_entry(mesh, agent.id, agent.name, agent.status) for agent in standing]
    views = [view for session in sessions for view in mesh.database.run(agents.view, session, idempotent=True)]
    chosen = [view for view in views if view.reaped_at is None and not view.external]
    return [_entry(mesh, view.id, view.name, view.status) for view in chosen]


def _entry(mesh: Mesh, agent: AgentId, name: str, status: AgentStatus) -> Entry:
    from agentmesh.store import agents

    entry: Entry = {"agent_id": agent, "name": name, "status": status}
    if status == AgentStatus.IDLE:
        output, error = mesh.database.run(agents.last_output, agent, idempotent=True)
        entry |= {"output": output} if error is None else {"error": error}
    return entry


def _wait_as(mesh: Mesh, place: Place, waiter: str, names: Sequence[str], timeout: float | None) -> dict[str, Any]:
    """Put an agent into a wait, and follow it to its end."""
    from agentmesh.cli.cursors import Cursors
    from agentmesh.cli.wakes import Wakes
    from agentmesh.store import waits

    ref, session = find_agent(mesh, place, waiter)
    seconds = _LONGEST if timeout is None else timeout
    targets = mesh.database.run(waits.targets, session.id, names, idempotent=True) if names else None
    cursors = Cursors(mesh.database)
    with Wakes(mesh, [session.id]) as wakes, stoppable(wakes.poke) as stop:
        cursors.skip(ref.id)
        result = mesh.database.run(waits.wait_begin, ref.id, targets, seconds)
        if result is not None:
            return result
        start_worker_if_none(mesh, session)
        give_up = math.inf
        while result is None and time.monotonic() < give_up:
            if stop.asked and give_up == math.inf:
                give_up = time.monotonic() + _SETTLE
                _interrupt(mesh, ref)
            wakes.wait(_TICK)
            try:
                result = _result_of(cursors, ref)
            except DatabaseUnreachable as error:
                wakes.endure(error)
    return result or {"outcome": WaitOutcome.INTERRUPTED, "results": []}


def _interrupt(mesh: Mesh, ref: Ref) -> None:
    from agentmesh.store import agents

    mesh.database.run(agents.interrupt, ref.id, idempotent=True)


def _result_of(cursors: Cursors, ref: Ref) -> dict[str, Any] | None:
    """Return the wait's result once it stands in the agent's transcript; that of a dead agent is its death."""
    for row in cursors.new(ref.id):
        if row.kind == Kind.COMMAND and row.content.get("command") == "wait":
            return dict(row.content["result"])
        if row.kind == Kind.EVENT and row.content.get("event") == "killed":
            return {"outcome": WaitOutcome.INTERRUPTED, "results": [], "note": f"{ref.name} was killed"}
    return None
