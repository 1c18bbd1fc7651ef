"""``agentmesh fork``: a child of an agent, optionally from an earlier row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options, text_argument
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import short
from agentmesh.domain.rows import Ref
from agentmesh.domain.shape import EFFORTS, Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
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
@click.option("--own", is_flag=True, help="It works in a tree of its own, made from the files of its parent.")
@click.option("--model", type=NAMED, metavar="MODEL", help="Another model than its parent's.")
@click.option("--tools", type=NAMED, metavar="NAME,...", help="Only these of its parent's tools.")
@click.option("--context", type=NAMED, metavar="all|none|last N", help="How much of the conversation it inherits.")
@click.option("--schema", type=NAMED, metavar="FILE", help="JSON Schema of its report.")
@click.option("--check", type=NAMED, metavar="COMMAND", help="Must exit with 0 before its report is taken.")
@click.option("--type", "kind", type=NAMED, metavar="TYPE", help="It is of this agent type, such as explore.")
@click.option("--effort", type=click.Choice(EFFORTS), help="How hard its model thinks, where it can be told.")
@click.option("--report", is_flag=True, help="The PROMPT comes from its parent, to which it reports.")
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
    own: bool,
    model: str | None,
    tools: str | None,
    context: str | None,
    schema: str | None,
    check: str | None,
    kind: str | None,
    report: bool,
    effort: str | None,
    as_json: bool,
    place: PlaceOptions,
) -> None:
    """Make a child called NAME. With a PROMPT (`-`: stdin) it starts to work, without one it is idle. Prints its id.

    With --at AGENT:ROW [PROMPT] it begins where AGENT was at that row (`agentmesh log AGENT --rows` and `agentmesh
    search` show the numbers). If the row is inside a step, it begins before that step. If AGENT is dead or its session
    has ended, a new session begins with a copy.

    With --own its files are its own, uncommitted ones included: nobody sees its changes before `agentmesh merge`. With
    --at too, they are as they were at that row.

    With --model, --tools or --context it differs from its parent. That costs the cached prefix, and is said. With
    --context none it begins without the conversation, with --context "last 3" it inherits the last three turns of it.

    With --type it has the system prompt, model and rules of the type, and of its parent's tools those that the type
    has. It begins without the conversation, unless you say --context all.

    With --schema (`-`: stdin) its report to its parent is JSON that fits the file's schema; after three misses it has
    failed. With --check the report is taken only when COMMAND exits with 0 where the child works.
    """
    form = None if schema is None else _schema_in(schema)
    wanted = None if tools is None else [tool.strip() for tool in tools.split(",")]
    shape = Shape(model, wanted, context, form, check, type=kind, effort=effort)
    if point is not None:
        if shape != Shape() or report:
            raise UsageError(
                "--model, --tools, --context, --schema, --check, --type, --effort and --report do not go with --at:"
                " it goes on as its parent did.",
                hint="Fork at the row first, then fork that child with them.",
            )
        if prompt is not None or parent is not None:
            raise UsageError("With --at the name is an option, and the parent is AGENT.", hint=_FORM)
        _fork_at(point, at_name, name, place, new_session=new_session, own=own, as_json=as_json)
        return
    if at_name is not None or new_session:
        raise UsageError("--name and --new-session go with --at.", hint=_FORM)
    if name is None:
        raise click.UsageError("Missing argument 'NAME'.")
    if report and prompt is None:
        raise UsageError(
            "--report needs a PROMPT.", hint="Without one nothing is asked, so there is nothing to report."
        )
    _fork(name, prompt, parent or "root", place, shape, own=own, report=report, as_json=as_json)


def _fork(
    name: str,
    prompt: str | None,
    parent: str,
    place: PlaceOptions,
    shape: Shape,
    *,
    own: bool,
    report: bool,
    as_json: bool,
) -> None:
    from agentmesh.app import trees
    from agentmesh.store import agents

    text = text_argument(prompt, "prompt") if prompt is not None else None
    with place.mesh("fork", who=[parent]) as mesh:
        above, session = find_agent(mesh, place, parent)
        child = trees.fork(mesh, above.id, name, text, own=own or None, shape=shape, report=report)
        cache = mesh.database.run(agents.fork_cache, child, idempotent=True)
        made = mesh.database.run(agents.get, child, idempotent=True)
        ref = Ref(made.id, made.name)
        if as_json:
            emit({**ref.json(), **({"cache": cache} if cache else {})})
        else:
            own_tree = ", with a tree of its own" if own else ""
            say(f"Forked {ref.label}, child of {above.label}{own_tree}.")
            if cache:
                say(f"Note: {cache}.")
            print(child)
        if text is not None:
            start_worker_if_none(mesh, session)


def _fork_at(
    point: str,
    name: str | None,
    prompt: str | None,
    place: PlaceOptions,
    *,
    new_session: bool,
    own: bool,
    as_json: bool,
) -> None:
    from agentmesh.app import trees
    from agentmesh.store import agents, sessions

    who, at = agent_and_row(point)
    text = text_argument(prompt, "prompt") if prompt is not None else None
    with place.mesh("fork", who=[who]) as mesh:
        source, session = find_agent(mesh, place, who)
        is_dead = mesh.database.run(agents.get, source.id, idempotent=True).status == AgentStatus.DEAD
        if new_session or is_dead or session.ended_at is not None:
            if name is not None:
                raise UsageError(
                    f"A new session begins with an agent called root: {source.label} is dead."
                    if is_dead
                    else "A new session begins with an agent called root.",
                    hint="Leave --name out.",
                )
            made = trees.fork_session(mesh, source.id, at, text, own=own or None)
            session = mesh.database.run(sessions.get, made.session_id, idempotent=True)
        else:
            made = trees.fork_at(mesh, source.id, name or "fork", at, text, own=own or None)
        if as_json:
            emit({**Ref(made.id, made.name).json(), "session_id": made.session_id, "seq": made.upto})
        else:
            _tell(made, source, at, session)
            print(made.id)
        if text is not None:
            start_worker_if_none(mesh, session)


def _schema_in(path: str) -> dict[str, Any]:
    from agentmesh.app.schema_file import read_schema

    return read_schema(path, stdin=True)


def agent_and_row(point: str) -> tuple[str, int]:
    """Return the agent and the row of ``coder:12``; raise UsageError."""
    found = _POINT.fullmatch(point.strip())
    if found is None:
        raise UsageError(
            f"{one_line(point, 60)!r} is not AGENT:ROW, as in coder:12.",
            hint="agentmesh log AGENT --rows shows the numbers of its rows; agentmesh search finds some.",
        )
    return found[1], int(found[2])


def _tell(made: Forked, source: Ref, asked: int, session: Session) -> None:
    if made.upto != asked:
        say(f"Row {asked} of {source.name} is inside a step: the fork begins before that step, at row {made.upto}.")
    if made.name == "root":
        say(f"Began session {short(session.id)} in {session.workdir}, a copy of {source.label} at row {made.upto}.")
        say(f"It is the newest of that directory now; agentmesh --resume {short(session.id)} opens it.")
    else:
        say(f"Forked {Ref(made.id, made.name).label}, child of {source.label} at row {made.upto}.")
