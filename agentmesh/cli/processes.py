"""``agentmesh processes``: commands that agents run in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line, printable

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session
    from agentmesh.store.processes import Process

_WIDTH = 80


@click.command("processes")
@click.option(
    "--stop", type=click.IntRange(1, 2**31 - 1), metavar="ID", help="End this one: SIGTERM, after 2 s SIGKILL."
)
@click.option("--output", type=click.IntRange(1, 2**31 - 1), metavar="ID", help="Print what this one has written.")
@json_option
@place_options()
def processes(*, stop: int | None, output: int | None, as_json: bool, place: PlaceOptions) -> None:
    """List the commands that agents run in the background, the newest first.

    Their owners get mail when one ends. The beginning and the end of the output are kept, 32 KiB in all.
    """
    from agentmesh.store import processes as store

    if stop is not None and output is not None:
        raise click.UsageError("--stop and --output do not go together.")
    with place.mesh("processes") as mesh:
        session = place.find_session(mesh)
        if stop is not None:
            _stop(mesh, session, stop, as_json=as_json)
        elif output is not None:
            _print_output(mesh, session, output, as_json=as_json)
        else:
            found = mesh.database.run(store.listed, session.id, idempotent=True)
            if as_json:
                emit([process_data(one) for one in found])
            for one in () if as_json else found:
                print(_line(one))
            if not found:
                say("No command was started in the background.")


def _stop(mesh: Mesh, session: Session, process: int, *, as_json: bool) -> None:
    from agentmesh.store import processes as store

    asked = mesh.database.run(store.stop, session.id, process, idempotent=True)
    if as_json:
        emit({"stopping": asked})
    else:
        say(f"Process {process} is being stopped." if asked else f"Process {process} has ended already.")


def _print_output(mesh: Mesh, session: Session, process: int, *, as_json: bool) -> None:
    from agentmesh.domain.errors import UnknownProcess
    from agentmesh.store import processes as store

    one = mesh.database.run(store.get, session.id, process, idempotent=True)
    if one is None:
        raise UnknownProcess(f"there is no process {process}", hint="agentmesh processes lists them.")
    if as_json:
        emit({**process_data(one), "output": one.output})
    else:
        print(printable(one.output), end="" if one.output.endswith("\n") else "\n")


def state_words(one: Process) -> str:
    """Return how a process goes, in a few words."""
    if one.without_worker:
        return "running without a worker"
    words = f"exited {one.exit_code}" if one.state == "exited" and one.exit_code is not None else one.state
    return f"{words}, {plural(one.matches, 'line')} matched" if one.watch else words


def _line(one: Process) -> str:
    started = f"{one.started_at.astimezone():%Y-%m-%d %H:%M:%S}"
    return f"{one.id}  {state_words(one)}  {started}  {one.agent_name}: {one_line(one.command, _WIDTH)}"


def process_data(one: Process) -> dict[str, object]:
    """Return it as ``--json`` prints it."""
    return {
        "process_id": one.id,
        "agent": {"agent_id": one.agent_id, "name": one.agent_name},
        "command": one.command,
        "watch": one.watch,
        "state": one.state,
        "exit_code": one.exit_code,
        "matches": one.matches,
        "output_bytes": one.output_bytes,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "without_worker": one.without_worker,
    }
