"""``agentmesh sessions``: list, end, delete, pin, prune, move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from agentmesh.cli.all_databases import all_databases
from agentmesh.cli.confirm import confirmed, yes_option
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.cli.render.data import emit, in_database, session_data
from agentmesh.cli.stopping import stoppable
from agentmesh.cli.talk import say
from agentmesh.domain import spans
from agentmesh.domain.errors import UsageError
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import short
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.moving import Resumed
    from agentmesh.domain.rows import Session
    from agentmesh.store.sessions import ExpiredSession


_TOLD_EACH: Final = 20
"""How many sessions are erased between two lines that say so."""


class _ListByDefault(click.Group):
    """A group that runs ``list``, with its options, if no command is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ListByDefault)
def sessions() -> None:
    """List, end, delete, pin, prune and move sessions; `agentmesh sessions` alone lists them."""


@sessions.command("list")
@click.option("--here", "only_here", is_flag=True, help="Only those of this directory.")
@click.option(
    "-n", "--limit", type=click.IntRange(1, 2**31 - 1), default=50, show_default=True, help="Limit of sessions."
)
@json_option
@place_options(session=False)
def list_sessions(*, only_here: bool, limit: int, as_json: bool, place: PlaceOptions) -> None:
    """List sessions, the newest first."""
    from agentmesh.store import sessions as store

    workdir = str(here().resolve()) if only_here else None
    with all_databases(place, "sessions") as databases:
        answers = databases.ask(
            lambda mesh: mesh.database.run(store.list_sessions, workdir, limit + 1, idempotent=True)
        )
    listed = [(name, session) for name, some in answers.items() for session in some]
    listed = sorted(listed, key=lambda one: one[1].created_at, reverse=True)
    listed, has_more = listed[:limit], len(listed) > limit
    if as_json:
        emit([{**session_data(session), **in_database(name)} for name, session in listed])
        return
    from agentmesh.cli.render.agents import print_sessions

    print_sessions(listed)
    if has_more:
        say("There are older sessions: a larger -n lists them.")


@sessions.command()
@click.argument("session_id", type=NAMED, metavar="ID")
@yes_option
@json_option
@place_options(session=False)
def end(session_id: str, *, yes: bool, as_json: bool, place: PlaceOptions) -> int:
    """Kill all agents of session ID, including the root. Everything stays readable. On a terminal it asks first."""
    from agentmesh.store import sessions as store

    with _opened(place, session_id) as (mesh, session):
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

    with _opened(place, session_id) as (mesh, session):
        if not confirmed(f"This erases {_described(mesh, session)}", yes=yes):
            return 1
        delete_session(mesh.workspaces, session.id)
    if as_json:
        emit({"session_id": session.id, "deleted": True})
    else:
        say(f"Deleted session {short(session.id)}.")
    return 0


@sessions.command()
@click.argument("session_id", type=NAMED, metavar="ID")
@json_option
@place_options(session=False)
def pin(session_id: str, *, as_json: bool, place: PlaceOptions) -> None:
    """Keep session ID however long nothing happens in it: `prune` and workers leave it alone."""
    _pin(session_id, place, pinned=True, as_json=as_json)


@sessions.command()
@click.argument("session_id", type=NAMED, metavar="ID")
@json_option
@place_options(session=False)
def unpin(session_id: str, *, as_json: bool, place: PlaceOptions) -> None:
    """Let session ID expire again."""
    _pin(session_id, place, pinned=False, as_json=as_json)


@sessions.command()
@click.option(
    "--older-than",
    "age_text",
    type=NAMED,
    metavar="AGE",
    help="How long nothing has happened in them, as in 90d or 12h; by default the setting `retention.sessions`.",
)
@click.option("--dry-run", is_flag=True, help="Only list them.")
@yes_option
@json_option
@place_options(session=False)
def prune(*, age_text: str | None, dry_run: bool, yes: bool, as_json: bool, place: PlaceOptions) -> int:
    """Erase your sessions of this host in which nothing has happened for long, also their trees and snapshots.

    Sessions that are pinned, that work, or that have a timer stay. Ctrl+C ends it after the session at hand. On a
    terminal it asks first.
    """
    from agentmesh.workspace import retention

    wanted = None if age_text is None else _age(age_text)
    with all_databases(place, "sessions") as databases:
        meshes = databases.ask(lambda mesh: mesh).values()
        age = wanted if wanted is not None else next(iter(meshes)).settings.retention.seconds
        if age is None:
            raise UsageError(
                "No age is given, and none is set.", hint='Give --older-than 90d, or set [retention] sessions = "90d".'
            )
        trees = [mesh.workspaces for mesh in meshes if not mesh.settings.is_read_only]
        found = [one for each in trees for one in retention.expired(each, age)]
        if dry_run:
            _print_pruned(found, as_json=as_json, is_done=False)
            return 0
        if found and not confirmed(f"This erases {_several(found)}", yes=yes):
            return 1
        with stoppable(lambda: None) as stop:
            erased = (one for each in trees for one in retention.prune(each, age, lambda: stop.asked))
            gone = list(_told(erased, len(found)))
    _print_pruned(gone, as_json=as_json, is_done=True)
    return 130 if stop.asked else 0


def _told(erased: Iterable[ExpiredSession], among: int) -> Iterator[ExpiredSession]:
    """Yield the sessions, and print now and then how many it were: each takes a while."""
    for count, one in enumerate(erased, 1):
        if count % _TOLD_EACH == 0:
            say(f"{count} of {plural(among, 'session')} erased")
        yield one


@sessions.command()
@click.argument("session_id", type=NAMED, metavar="ID", required=False)
@click.argument("to", type=NAMED, metavar="DATABASE", required=False)
@click.option("--resume", "is_resumed", is_flag=True, help="Finish or undo the moves that were cut short.")
@json_option
@place_options(session=False)
def move(session_id: str | None, to: str | None, *, is_resumed: bool, as_json: bool, place: PlaceOptions) -> int:
    """Move session ID, in which nothing runs, to another DATABASE of your configuration: whole or not at all.

    Its messages, todos, timers and snapshots get numbers that are free there: the last three digits stay. Files stay
    where they are.
    """
    from agentmesh.app import moving

    if is_resumed == bool(session_id or to) or (session_id and not to):
        raise UsageError("Give the session and the database, or --resume alone.")
    databases = place.databases(place.settings(), "sessions")
    if databases is None:
        place.settings_without_mesh()  # says so if an agent runs this
        raise UsageError(
            "There is one database only.", hint="Name the others in [databases]: docs/how-to/several-databases.md"
        )
    with databases:
        if session_id is None or to is None:
            return _print_resumed(list(moving.resume(databases)), as_json=as_json)
        source = databases.of_session(session_id)
        session = place._replace(session=session_id).find_session(source)
        moved = moving.move(databases, session, source, to)
    if as_json:
        emit(moved._asdict())
        return 0
    sentence = f"Moved session {short(moved.session_id)} from {moved.source} to {moved.destination}"
    changed = [f"{name} by {by:+,}" for name, by in moved.offsets.items() if by and name in _NUMBERED]
    numbers = f" Numbers have changed: {', '.join(changed)}." if changed else ""
    say(f"{sentence}: {plural(moved.rows, 'row')}.{numbers}")
    return 0


_NUMBERED: Final = ("mail", "todos", "timers", "snapshots", "merges")
"""Tables whose numbers people and agents see."""


def _print_resumed(found: Sequence[Resumed], *, as_json: bool) -> int:
    """Print the ends of moves that were cut short; return 1 if one is still unfinished."""
    from agentmesh.app.moving import Outcome

    words = {
        Outcome.ARRIVED: "has arrived in {0.destination}",
        Outcome.STAYED: "has stayed in {0.source}",
        Outcome.UNKNOWN: "is between {0.source} and {0.destination}: one of them is away, busy, or not configured",
    }
    if as_json:
        emit([one._asdict() for one in found])
    else:
        for one in found:
            say(f"Session {short(one.session_id)} {words[one.outcome].format(one)}.")
        if not found:
            say("No move was cut short.")
    return 1 if any(one.outcome is Outcome.UNKNOWN for one in found) else 0


@contextmanager
def _opened(place: PlaceOptions, session_id: str) -> Iterator[tuple[Mesh, Session]]:
    """Open the database of the session that is named; yield both."""
    place = place._replace(session=session_id)
    with place.mesh("sessions") as mesh:
        yield mesh, place.find_session(mesh)


def _pin(session_id: str, place: PlaceOptions, *, pinned: bool, as_json: bool) -> None:
    from agentmesh.store import sessions as store

    with _opened(place, session_id) as (mesh, session):
        mesh.database.run(store.pin, session.id, pinned=pinned, idempotent=True)
    if as_json:
        emit({"session_id": session.id, "pinned": pinned})
    else:
        say(f"Session {short(session.id)} {'stays for good' if pinned else 'may expire'}.")


def _age(text: str) -> int:
    """Return the seconds of an age as a person writes it; raise UsageError."""
    seconds = spans.read_age(text)
    if seconds is None:
        raise UsageError(f"--older-than {one_line(text, 40)!r} should be {spans.AGE}.")
    return seconds


def _several(found: Sequence[ExpiredSession]) -> str:
    first = found[0]
    return f"{plural(len(found), 'session')}, the oldest of {first.created_at.astimezone():%Y-%m-%d} in {first.workdir}"


def _print_pruned(found: Sequence[ExpiredSession], *, as_json: bool, is_done: bool) -> None:
    """Print which sessions are gone, or would go."""
    if as_json:
        emit({"erased" if is_done else "would_erase": [one._asdict() for one in found]})
        return
    for one in found:
        created = f"{one.created_at.astimezone():%Y-%m-%d}"
        print(f"{short(one.id)}  {created}  {one_line(one.workdir, 60)}  {one_line(one.title, 60)}")
    say(f"{'Erased' if is_done else 'Would erase'} {plural(len(found), 'session')}.")


def _described(mesh: Mesh, session: Session) -> str:
    """Return ``session 1234abcd (title) in /directory, 3 living agents``."""
    from agentmesh.store import agents

    view = mesh.database.run(agents.view, session.id, idempotent=True)
    living = sum(agent.died_at is None for agent in view)
    title = f" ({one_line(session.title, 60)})" if session.title else ""
    return f"session {short(session.id)}{title} in {session.workdir}, {plural(living, 'living agent')}"
