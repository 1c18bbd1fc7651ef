"""``agentmesh timeline``: what each agent did and when, drawn in the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.ids import short

if TYPE_CHECKING:
    from agentmesh.export.cells import Line
    from agentmesh.export.lanes import Timeline

_PIPE = 120
"""Columns, if there is no terminal that has a width."""
_SECONDS = 60.0


@click.command()
@click.option("--agent", type=NAMED, metavar="AGENT", help="Only this agent and all agents below it.")
@click.option("--width", type=click.IntRange(40, 1000), metavar="N", help="Columns; by default the terminal's width.")
@json_option
@place_options()
def timeline(*, agent: str | None, width: int | None, as_json: bool, place: PlaceOptions) -> None:
    """Draw what each agent did and when: a line per agent with its model calls, tools, waits and mail.

    Long pauses in which nothing happened are shortened. `agentmesh export --format html` draws the same in more detail.
    """
    from agentmesh.export import lanes, secrets
    from agentmesh.store.export import snapshot

    with place.mesh("timeline", who=[agent] if agent else ()) as mesh:
        if agent is None:
            session, chosen = place.find_session(mesh), None
        else:
            ref, session = find_agent(mesh, place, agent)
            chosen = ref.id
        with mesh.database.connection() as conn, snapshot(conn, session.id, _SECONDS) as snap:
            found = lanes.read(snap, chosen)
        clean = secrets.Redactor(secrets.configured(mesh.settings, os.environ))
    if as_json:
        _emit(found, clean)
        return
    from agentmesh.export.cells import draw, signs_for, summary

    say(f"session {short(session.id)}  {session.title or session.workdir}\n{summary(found)}")
    columns = width or (shutil.get_terminal_size((_PIPE, 24)).columns if sys.stdout.isatty() else _PIPE)
    _show(draw(found, columns, signs_for(sys.stdout.encoding)))


def _show(lines: list[Line]) -> None:
    """Print the drawing, in colours only on a terminal."""
    from agentmesh.export.cells import STYLES, plain

    if not sys.stdout.isatty():
        for line in lines:
            print(plain(line))
        return
    from rich.text import Text

    from agentmesh.cli.render.screen import console

    out = console()
    for line in lines:
        text = Text.assemble(*((part, STYLES.get(style, "")) for part, style in line))
        out.print(text, no_wrap=True, overflow="ignore", crop=False)


def _emit(found: Timeline, clean: Callable[[str], str]) -> None:
    """Print one object per line: agents, then their spans, then mail; names without secrets, as in exports."""
    for lane in found.lanes:
        times = {"from": lane.began, "to": lane.ended}
        emit({"type": "agent", "agent_id": lane.id, "name": clean(lane.name), "status": lane.status, **times})
    for lane in found.lanes:
        for span in lane.spans:
            what = {"kind": span.kind, "name": clean(span.name), "count": span.count}
            how = {"failed": span.failed, "open": span.open, "from": span.began, "to": span.ended}
            emit({"type": "span", "agent_id": lane.id, **what, **how})
    for letter in found.letters:
        ends = {"from_id": letter.sender, "to_id": letter.recipient, "automatic": letter.automatic}
        emit({"type": "mail", "message_id": letter.id, **ends, "at": letter.sent_at})
