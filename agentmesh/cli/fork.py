"""``agentmesh fork``: a child of an agent, optionally from an earlier row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from agentmesh.cli.address import find_agent
from agentmesh.cli.named import NAMED
from agentmesh.cli.options import json_option, place_options, text_argument
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.cli.verbs import label
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import short
from agentmesh.domain.rows import Ref
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session
    from agentmesh.store.travel import Forked

_POINT = re.compile(r"(.+):([0-9]{1,15})")
_FORM = 'agentmesh fork --at AGENT:ROW [--name NAME] ["PROMPT"]'


@click.command()
@click.argument("name", type=NAMED, required=False)
@click.argument("prompt", required=False)
@click.option("--parent", type=NAMED, metavar="AGENT", help="Whose conversation it inherits; the root's by default.")
@click.option("--at", "point", type=NAMED, metavar="AGENT:ROW", help="It inherits AGENT's conversation up to this row.")
@click.option("--name", "at_name", type=NAMED, metavar="NAME", help="With --at: the child's name; fork by default.")
@click.option("--new-session", is_flag=True, help="With --at: begin a new session, as for a dead AGENT.")
@json_option
@place_options()
def fork(
    name: str | None,
    prompt: str | None,
    *,
    parent: str | None,
    point: str | None,
    at_name: str | None,
    new_session: bool,
    as_json: bool,
    place: PlaceOptions,
) -> None:
    """Make a child called NAME. With a PROMPT (`-`: stdin) it starts to work, without one it is idle. Prints its id.

    With --at AGENT:ROW [PROMPT] it begins where AGENT was at that row (`agentmesh log AGENT --rows` and `agentmesh
    search` show the numbers). If the row is inside a step, it begins before that step. If AGENT is dead or its session
    has ended, a new session begins with a copy.
    """
    if point is not None:
        if prompt is not None or parent is not None:
            raise UsageError("With --at the name is an option, and the parent is AGENT.", hint=_FORM)
        _fork_at(point, at_name, name, place, new_session=new_session, as_json=as_json)
        return
    if at_name is not None or new_session:
        raise UsageError("--name and --new-session go with --at.", hint=_FORM)
    if name is None:
        raise click.UsageError("Missing argument 'NAME'.")
    _fork(name, prompt, parent or "root", place, as_json=as_json)


def _fork(name: str, prompt: str | None, parent: str, place: PlaceOptions, *, as_json: bool) -> None:
    from agentmesh.store import agents

    text = text_argument(prompt, "prompt") if prompt is not None else None
    with place.mesh("fork") as mesh:
        above, session = find_agent(mesh, place, parent)
        child = mesh.database.run(agents.fork, above.id, name, text)
        made = mesh.database.run(agents.get, child, idempotent=True)
        ref = Ref(made.id, made.name)
        if as_json:
            emit(ref.json())
        else:
            say(f"Forked {label(ref)}, child of {label(above)}.")
            print(child)
        if text is not None:
            start_worker_if_none(mesh, session)


def _fork_at(
    point: str, name: str | None, prompt: str | None, place: PlaceOptions, *, new_session: bool, as_json: bool
) -> None:
    from agentmesh.store import agents, sessions

    who, at = _agent_and_row(point)
    text = text_argument(prompt, "prompt") if prompt is not None else None
    with place.mesh("fork") as mesh:
        source, session = find_agent(mesh, place, who)
        is_dead = mesh.database.run(agents.get, source.id, idempotent=True).status == AgentStatus.DEAD
        if new_session or is_dead or session.ended_at is not None:
            if name is not None:
                raise UsageError(
                    f"A new session begins with an agent called root: {label(source)} is dead."
                    if is_dead
                    else "A new session begins with an agent called root.",
                    hint="Leave --name out.",
                )
            made = _in_a_new_session(mesh, source, at, text)
            session = mesh.database.run(sessions.get, made.session_id, idempotent=True)
        else:
            made = _child(mesh, source, name or "fork", at, text)
        if as_json:
            emit({**Ref(made.id, made.name).json(), "session_id": made.session_id, "seq": made.upto})
        else:
            _tell(made, source, at, session)
            print(made.id)
        if text is not None:
            start_worker_if_none(mesh, session)


def _agent_and_row(point: str) -> tuple[str, int]:
    found = _POINT.fullmatch(point.strip())
    if found is None:
        raise UsageError(
            f"{one_line(point, 60)!r} is not AGENT:ROW, as in coder:12.",
            hint="agentmesh log AGENT --rows shows the numbers of its rows; agentmesh search finds some.",
        )
    return found[1], int(found[2])


def _child(mesh: Mesh, source: Ref, name: str, at: int, prompt: str | None) -> Forked:
    from agentmesh.store import travel

    return mesh.database.run(travel.fork_at, source.id, name, at, prompt)


def _in_a_new_session(mesh: Mesh, source: Ref, at: int, prompt: str | None) -> Forked:
    from agentmesh.store import travel

    return mesh.database.run(travel.fork_session, source.id, at, prompt)


def _tell(made: Forked, source: Ref, asked: int, session: Session) -> None:
    if made.upto != asked:
        say(f"Row {asked} of {source.name} is inside a step: the fork begins before that step, at row {made.upto}.")
    if made.name == "root":
        say(f"Began session {short(session.id)} in {session.workdir}, a copy of {label(source)} at row {made.upto}.")
        say(f"It is the newest of that directory now; agentmesh --resume {short(session.id)} opens it.")
    else:
        say(f"Forked {label(Ref(made.id, made.name))}, child of {label(source)} at row {made.upto}.")
