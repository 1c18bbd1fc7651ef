"""``agentmesh tree --at``: the agents of a session at an earlier time."""

from __future__ import annotations

from agentmesh.cli.moments import read_moment
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.render.figures import moment as shown_moment
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import short


def show_tree_at(moment: str, *, everything: bool, silents: bool, as_json: bool, place: PlaceOptions) -> None:
    """Print the tree at a time, with each agent's newest row then: `fork --at` goes back there."""
    from agentmesh.cli.render.tree import tree_data, tree_table
    from agentmesh.store import changes, travel

    with place.mesh("tree") as mesh:
        at = read_moment(moment, mesh.database.run(travel.now, idempotent=True))
        session = place.find_session(mesh)
        if at < session.created_at:
            raise UsageError(
                f"Session {short(session.id)} began later, at {shown_moment(session.created_at)}.",
                hint="--session names another one; agentmesh sessions lists them.",
            )
        then = mesh.database.run(travel.tree_at, session.id, at, idempotent=True)
        trees = mesh.database.run(changes.trees_at, session.id, at, idempotent=True)
    views = [one.view for one in then]
    newest = {one.view.id: one.last_seq for one in then}
    if as_json:
        data = tree_data(views, everything=everything, rows=newest, trees=trees)
        emit({"session_id": session.id, "at": at, "agents": data})
        return
    from agentmesh.cli.render.screen import print_block

    say(f"session {short(session.id)} as it was at {shown_moment(at)}, as far as its rows tell")
    print_block(tree_table(views, ids=True, everything=everything, silents=silents, rows=newest))
    root = next((trees[view.id] for view in views if view.parent_id is None and view.id in trees), None)
    if root:
        say(f"files then: Git tree {root[0][:12]}; --json has that of each agent, and fork --at --own goes back to it")
