"""``agentmesh timers`` and the times of ``agentmesh send``: messages that are due later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.attached import References
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import short
from agentmesh.domain.text import one_line
from agentmesh.domain.timers import When, read_span, read_time

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Ref, Session
    from agentmesh.store.timers import Timer

_WIDTH = 60


def when_of(*, after: str | None, at: str | None, every: str | None, cron: str | None) -> When:
    """Return when a message is due, from what a person gave; raise UsageError for text that is no time."""
    if cron is not None:
        from agentmesh.store.cron import read_cron

        if (after, at, every) != (None, None, None):
            raise UsageError("A cron expression says all times.", hint="Leave out --after, --at and --every.")
        cron = read_cron(cron)
    return When(
        None if at is None else read_time(at),
        None if after is None else read_span(after),
        None if every is None else read_span(every),
        cron,
    )


def send_later(
    mesh: Mesh, session: Session, ref: Ref, text: str, when: When, key: str | None, images: References, *, as_json: bool
) -> None:
    """Send a message when it is due; print the timer's id, and have a worker run until then."""
    from agentmesh.store import timers
    from agentmesh.store.cron import words

    what = (text, when, None, key, images)
    timer = mesh.database.run(timers.send_later, None, ref.id, *what, idempotent=key is not None)
    due = mesh.database.run(timers.due_at, timer, idempotent=True)
    if as_json:
        cron = {} if when.cron is None else {"cron": when.cron}
        emit({"status": "scheduled", "to": ref.json(), "timer_id": timer, "due_at": due, **cron})
    else:
        first = f"{due.astimezone():%Y-%m-%d %H:%M:%S}"
        times = first if when.cron is None else f"{first}, and then {words(when.cron)}"
        say(f"{ref.name} ({short(ref.id)}) gets it at {times}, if a worker runs then.")
        print(timer)
    start_worker_if_none(mesh, session)


@click.command("timers")
@click.option("--cancel", type=click.IntRange(1, 2**63 - 1), metavar="ID", help="End this one before it is due.")
@json_option
@place_options()
def timers(*, cancel: int | None, as_json: bool, place: PlaceOptions) -> None:
    """List the session's messages that are due later: `send --after`, `--at`, `--every`, `--cron`.

    A worker delivers them. One that was started in the background stays while a message is due; after a restart of the
    machine run `agentmesh worker`.
    """
    from agentmesh.store import timers as store

    with place.mesh("timers") as mesh:
        session = place.find_session(mesh)
        if cancel is not None:
            ended = mesh.database.run(store.cancel, session.id, cancel, idempotent=True)
            if as_json:
                emit({"cancelled": ended})
            else:
                say(f"Timer {cancel} is cancelled." if ended else f"Timer {cancel} has ended already.")
            return
        found = mesh.database.run(store.pending, session.id, idempotent=True)
        if as_json:
            emit([timer_data(one) for one in found])
        for one in () if as_json else found:
            print(_line(one))
        if not found:
            say("No message is due later.")
        else:
            start_worker_if_none(mesh, session)


def _line(timer: Timer) -> str:
    from agentmesh.store.cron import words

    again = f"  every {timer.every_seconds:.12g} s" if timer.every_seconds else ""
    if timer.cron:
        again = f"  {words(timer.cron)}"
    held = "" if timer.state == "pending" else f"  {timer.state}"
    head = f"{timer.id}  {timer.due_at.astimezone():%Y-%m-%d %H:%M:%S}{again}{held}"
    return f"{head}  {timer.sender_name} to {timer.recipient_name}: {one_line(timer.body, _WIDTH)}"


def timer_data(timer: Timer) -> dict[str, object]:
    """Return it as ``--json`` prints it."""
    return {
        "timer_id": timer.id,
        "sender": timer.sender_name,
        "to": {"agent_id": timer.recipient, "name": timer.recipient_name},
        "body": timer.body,
        "due_at": timer.due_at,
        "every_seconds": timer.every_seconds,
        "cron": timer.cron,
        "rung": timer.rung,
        "state": timer.state,
    }
