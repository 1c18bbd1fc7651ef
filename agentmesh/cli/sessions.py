"""``agentmesh sessions``: list, end, delete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentmesh.cli.confirm import confirmed, yes_option
from agentmesh.cli.named import NAMED
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit, session_data
from agentmesh.cli.talk import say
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import short
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Session


class _ListByDefault(click.Group):
    """A group that runs ``list``, with its options, if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ListByDefault)
def sessions() -> None:
    """List, end and delete sessions; `agentmesh sessions` alone lists them."""


@sessions.command("list")
@click.option("--here", is_flag=True, help="Only those of this directory.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Limit of sessions.")
@json_option
@place_options(session=False)
def list_sessions(*, here: bool, limit: int, as_json: bool, place: PlaceOptions) -> None:
    """List sessions, the newest first."""
    from agentmesh.store import sessions as store

    with place.mesh("sessions") as mesh:
        workdir = str(Path.cwd().resolve()) if here else None
        found = mesh.database.run(store.list_sessions, workdir, limit, idempotent=True)
    if as_json:
        emit([session_data(session) for session in found])
        return
    from agentmesh.cli.render.agents import print_sessions

    print_sessions(found)


@sessions.command()
@click.argument("session_id", type=NAMED, metavar="ID")
@yes_option
@json_option
@place_options(session=False)
def end(session_id: str, *, yes: bool, as_json: bool, place: PlaceOptions) -> int:
    """Kill all agents of session ID, including the root. Everything stays readable. On a terminal it asks first."""
    from agentmesh.store import sessions as store

    with place.mesh("sessions") as mesh:
        session = mesh.find_session(session=session_id, workdir=Path.cwd())
        if not confirmed(f"This ends {_described(mesh, session)}", yes=yes):
            return 1
        count = mesh.database.run(store.end_session, session.id, idempotent=True)
    if as_json:
        emit({"session_id": session.id, "killed": count})
    else:
        say(f"Ended session {short(session.id)}: {plural(count, 'agent')} killed.")
    return 0


@sessions.command()
@click.argument("session_id", type=NAMED, metavar="ID")
@yes_option
@json_option
@place_options(session=False)
def delete(session_id: str, *, yes: bool, as_json: bool, place: PlaceOptions) -> int:
    """Erase session ID for good, with its agents, messages and conversations; refused while anything runs.

    On a terminal it asks first.
    """
    from agentmesh.workspace.deleting import delete_session

    with place.mesh("sessions") as mesh:
        session = mesh.find_session(session=session_id, workdir=Path.cwd())
        if not confirmed(f"This erases {_described(mesh, session)}", yes=yes):
            return 1
        delete_session(mesh.workspaces, session.id)
    if as_json:
        emit({"session_id": session.id, "deleted": True})
    else:
        say(f"Deleted session {short(session.id)}.")
    return 0


def _described(mesh: Mesh, session: Session) -> str:
    """Return ``session 1234abcd (title) in /directory, 3 living agents``."""
    from agentmesh.store import agents

    view = mesh.database.run(agents.view, session.id, idempotent=True)
    living = sum(agent.died_at is None for agent in view)
    title = f" ({one_line(session.title, 60)})" if session.title else ""
    return f"session {short(session.id)}{title} in {session.workdir}, {plural(living, 'living agent')}"
