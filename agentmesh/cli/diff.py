"""``agentmesh diff``: what an agent changed in files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.figures import line_changes, plural

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.changes import Change
    from agentmesh.domain.rows import Ref
    from agentmesh.git.facts import FileDiff


@click.command()
@click.argument("agent", type=NAMED)
@click.option(
    "--since", type=click.IntRange(0, 2**63 - 1), metavar="ROW", help="Only what came after this row of AGENT."
)
@click.option("--net", "as_net", is_flag=True, help="One diff for each file where AGENT works, as git apply reads it.")
@json_option
@place_options()
def diff(agent: str, *, since: int | None, as_net: bool, as_json: bool, place: PlaceOptions) -> None:
    """Show what AGENT and all below it changed in files, as unified diffs: each call, file by file.

    In a Git repository the changes by commands are among them. Elsewhere only edit and write are known.

    --net shows how the files where AGENT works differ from before. In a tree of its own that is what a merge would
    bring. In the session's directory it shows the files that AGENT and all below it changed.
    """
    with place.mesh("diff", who=[agent]) as mesh:
        ref, _ = find_agent(mesh, place, agent)
        if as_net:
            _net(mesh, ref, since, as_json=as_json)
        else:
            _each(mesh, ref, since, as_json=as_json)


def _each(mesh: Mesh, ref: Ref, since: int | None, *, as_json: bool) -> None:
    from agentmesh.domain.changes import EACH, HONEST, by_file, unified
    from agentmesh.workspace.changed import changed

    found = changed(mesh.workspaces, ref.id, since=since)
    files = by_file(found.changes)
    if as_json:
        for change in (change for file in files for change in file.changes):
            emit(_json(change))
        return
    older = f" Only the newest {len(found.changes):,} changes are shown." if found.is_cut else ""
    later = "" if since is None else f" after row {since}"
    honest = EACH if found.by_snapshots else HONEST
    say(f"{ref.label} with all below it changed {plural(len(files), 'file')}{later}. {honest}{older}")
    for line in unified(files):
        print(line)


def _net(mesh: Mesh, ref: Ref, since: int | None, *, as_json: bool) -> None:
    from agentmesh.domain.errors import NoRepository
    from agentmesh.workspace.changed import net

    found = net(mesh.workspaces, ref.id, since=since)
    if found is None:
        raise NoRepository(
            f"no snapshot of the files where {ref.label} works has been taken",
            hint="They need a Git repository. Without --net, diff shows what edit and write changed.",
        )
    if as_json:
        for file in found.files:
            emit(_net_json(file, found.before, found.after))
        return
    added, removed = (sum(getattr(one, name) for one in found.files) for name in ("added", "removed"))
    where = "in its own tree" if found.is_own else "in the session's directory, where others may have changed them too"
    say(f"{ref.label}: {plural(len(found.files), 'file')}, {line_changes(added, removed)}, {where}.")
    _print_diff(found.files)


def _print_diff(files: Sequence[FileDiff]) -> None:
    """Print diffs as Git writes them; on a terminal, hidden characters are made visible."""
    from agentmesh.cli.render.files import print_patch
    from agentmesh.domain.text import visible

    for file in files:
        if file.clipped:
            say(f"The diff of {visible(file.path)} is too long: its end is missing.")
        if not file.text:
            say(f"{visible(file.path)} is {file.status}, and is not text.")
        else:
            print_patch(file.text)


def _json(change: Change) -> dict[str, Any]:
    at: datetime = change.at
    made = {"agent_id": str(change.agent_id), "name": change.name, "seq": change.seq, "tool": change.tool, "at": at}
    diff = "\n".join(line.whole for line in change.lines)
    figures = {"added": change.added, "removed": change.removed}
    return {**made, "path": change.path, "created": change.is_new, "gone": change.is_gone, **figures, "diff": diff}


def _net_json(file: FileDiff, before: str, after: str) -> dict[str, Any]:
    from agentmesh.domain.text import storable

    figures = {"path": storable(file.path), "status": file.status, "added": file.added, "removed": file.removed}
    more = {"binary": file.binary, "clipped": file.clipped, "before": before, "after": after}
    return {**figures, **more, "diff": storable(file.text)}
