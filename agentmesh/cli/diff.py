"""``agentmesh diff``: what an agent changed in files."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.address import find_agent
from agentmesh.cli.named import NAMED
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.cli.verbs import label
from agentmesh.domain.figures import plural

if TYPE_CHECKING:
    from agentmesh.domain.changes import Change


@click.command()
@click.argument("agent", type=NAMED)
@json_option
@place_options()
def diff(agent: str, *, as_json: bool, place: PlaceOptions) -> None:
    """Show what AGENT and all below it changed in files, as unified diffs: each call of edit and write, file by file.

    What commands changed is not in it.
    """
    from agentmesh.domain.changes import HONEST, by_file, unified
    from agentmesh.store import changes

    with place.mesh("diff") as mesh:
        ref, _ = find_agent(mesh, place, agent)
        found = mesh.database.run(changes.newest, ref.id, changes.MOST + 1, idempotent=True)
    shown = found[-changes.MOST :]
    files = by_file(shown)
    if as_json:
        for change in (change for file in files for change in file.changes):
            emit(_json(change))
        return
    older = f" Only the newest {len(shown)} changes are shown." if len(shown) < len(found) else ""
    say(f"{label(ref)} with all below it changed {plural(len(files), 'file')}. {HONEST}{older}")
    for line in unified(files):
        print(line)


def _json(change: Change) -> dict[str, Any]:
    at: datetime = change.at
    made = {"agent_id": str(change.agent_id), "name": change.name, "seq": change.seq, "tool": change.tool, "at": at}
    diff = "\n".join(line.whole for line in change.lines)
    return {**made, "path": change.path, "created": change.is_new, "diff": diff}
