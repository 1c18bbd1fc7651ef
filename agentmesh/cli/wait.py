"""``agentmesh wait``: watch until agents rest, or wait in place of an agent."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED, Number
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none, tell_unserved
from agentmesh.cli.stopping import stoppable
from agentmesh.cli.talk import say
from agentmesh.domain.errors import DatabaseUnreachable, Interrupted
from agentmesh.domain.states import AgentStatus, WaitOutcome

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import AgentView

_TICK = 2.0
"""Seconds between two looks if no notification arrives."""
_NAMED = 5
"""Agents that are named, at most."""
_SETTLE = 10.0
"""Seconds in which an interrupted wait may end."""


@click.command()
@click.argument("agents", type=NAMED, nargs=-1)
@click.option("--timeout", type=Number(min=0), metavar="SECONDS", help="Time limit; exit code 3.")
@click.option(
    "--as", "waiter", type=NAMED, metavar="AGENT", help="This agent waits, and takes the messages that end its wait."
)
@json_option
@place_options()
def wait(
    agents: tuple[str, ...], *, timeout: float | None, waiter: str | None, as_json: bool, place: PlaceOptions
) -> int:
    """Wait until AGENTS (by default all of the session) are idle or dead, and print how each ended.

    Nothing is consumed. With --as it is that agent's own wait: for a message from each of AGENTS, or from anyone if
    none is named; the messages that it takes become part of its conversation.
    """
    with place.mesh("wait", who=agents if waiter is None else [waiter]) as mesh:
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


def _watch(mesh: Mesh, place: PlaceOptions, names: Sequence[str], timeout: float | None) -> dict[str, Any]:
    """Watch until the agents rest."""
    from agentmesh.api.changes import Changes
    from agentmesh.api.resting import until_rest
    from agentmesh.store import agents

    found = [find_agent(mesh, place, name) for name in names]
    listed = {ref.id: ref for ref, _ in found}
    sessions = {session.id for _, session in found} or {place.find_session(mesh).id}

    def awaited_now() -> list[AgentView]:
        seen = [view for one in sessions for view in mesh.database.run(agents.view, one, idempotent=True)]
        return [one for one in seen if not listed or one.id in listed]

    def tell(awaited: Sequence[AgentView]) -> bool:
        return tell_unserved(mesh, awaited, one_session=len(sessions) == 1)

    first = awaited_now()
    _tell_whom([one.name for one in first if one.status is AgentStatus.RUNNING])
    is_known = tell(first)

    def look_again(_first: bool) -> None:
        nonlocal is_known
        is_known = is_known or tell(awaited_now())

    with Changes(mesh, sessions) as wakes:
        return until_rest(mesh.database, wakes, sessions, list(listed), timeout, tick=_TICK, serve=look_again).json()


def _tell_whom(names: Sequence[str]) -> None:
    """Print at a terminal the agents that it waits for; otherwise nothing would be seen until the end."""
    if names and sys.stderr is not None and sys.stderr.isatty():
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        say(f"Waiting for {', '.join(names[:_NAMED])}{more}. Ctrl-C ends the wait; the agents go on.")


def _wait_as(
    mesh: Mesh, place: PlaceOptions, waiter: str, names: Sequence[str], timeout: float | None
) -> dict[str, Any]:
    """Put an agent into a wait, and follow it to its end."""
    from agentmesh.api.changes import Changes
    from agentmesh.api.own_wait import AgentWait
    from agentmesh.store import agents

    ref, session = find_agent(mesh, place, waiter)
    own = AgentWait(mesh.database, session.id, ref.id)
    with Changes(mesh, [session.id]) as wakes, stoppable(wakes.poke) as stop:
        result = own.begin(names, timeout)
        if result is not None:
            return result
        start_worker_if_none(mesh, session)
        give_up = math.inf
        while result is None and time.monotonic() < give_up:
            if stop.asked and give_up == math.inf:
                give_up = time.monotonic() + _SETTLE
                mesh.database.run(agents.interrupt, ref.id, idempotent=True)
            wakes.wait(_TICK, [ref.id])
            try:
                result = own.look()
            except DatabaseUnreachable as error:
                wakes.endure(error)
    return result or {"outcome": WaitOutcome.INTERRUPTED, "results": []}
