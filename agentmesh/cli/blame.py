"""``agentmesh blame``: which agent changed each line of a file last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line, storable, visible

if TYPE_CHECKING:
    from agentmesh.workspace.blame import Line

_NAME = 24


@click.command()
@click.argument("path", type=NAMED)
@click.option("--agent", type=NAMED, metavar="AGENT", help="The file where AGENT works; the root's by default.")
@json_option
@place_options()
def blame(path: str, *, agent: str | None, as_json: bool, place: PlaceOptions) -> None:
    """Show for each line of PATH which agent brought it, and at which row of its conversation.

    PATH is absolute or relative to the current directory, or else to the session's. `agentmesh log AGENT --rows` shows
    the row. For a line that a merge brought it names the agent that wrote it. A line without a name is older than the
    first snapshot; "others" is somebody who is no agent here.
    """
    with place.mesh("blame", who=[agent or "root"]) as mesh:
        ref, _ = find_agent(mesh, place, agent or "root")
        from agentmesh.workspace import blame as reading
        from agentmesh.workspace.naming import named

        (path,) = named(mesh.workspaces, ref.id, [path], here())
        lines = reading.blame(mesh.workspaces, ref.id, path)
    if not lines:
        raise UsageError(
            f"No snapshot where {ref.name} works has a text file {one_line(visible(path), 100)}.",
            hint="Snapshots are taken in a Git repository, when a call has changed files.",
        )
    if as_json:
        for number, line in enumerate(lines, 1):
            emit(_json(number, line))
        return
    say(f"{one_line(visible(path), 200)} as of the newest snapshot where {ref.name} works")
    names = [_who(line) for line in lines]
    width, digits = max(map(len, names)), len(str(len(lines)))
    for number, (name, line) in enumerate(zip(names, lines, strict=True), 1):
        text = visible(line.text.removesuffix("\r"))  # in a file with CRLF every line has one
        print(f"{name:<{width}}  {_at(line):11}  {number:>{digits}} {text}".rstrip())


def _who(line: Line) -> str:
    if line.by is None:
        return ""
    if line.by.name is None:
        return "others"
    name = one_line(line.by.name, _NAME)
    return name if line.by.seq is None else f"{name}:{line.by.seq}"


def _at(line: Line) -> str:
    return f"{line.at.astimezone():%m-%d %H:%M}" if line.at else ""


def _json(number: int, line: Line) -> dict[str, Any]:
    by = line.by
    made = {
        "agent_id": by and by.agent_id,
        "name": by and by.name,
        "seq": by and by.seq,
        "tool": by and by.tool,
        "kind": by and by.kind,
        "at": by and by.at,
    }
    return {"line": number, **made, "text": storable(line.text)}
