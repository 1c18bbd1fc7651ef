"""``agentmesh workspaces``: the directories in which agents work; repair and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from agentmesh.cli.all_databases import all_databases
from agentmesh.cli.confirm import confirmed, yes_option
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.outcome import DONE, FAILED
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.errors import TreeError, UnknownWorkspace, UsageError, WorkspaceInUse
from agentmesh.domain.ids import beginning_with, short
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.workspaces import WorkspaceView
    from agentmesh.workspace.results import Mended, TreeFinding


@click.group(invoke_without_command=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Those of all sessions, and removed ones.")
@click.option("--repair", is_flag=True, help="Compare rows and directories of this host, and repair what differs.")
@yes_option
@json_option
@place_options()
@click.pass_context
def workspaces(
    context: click.Context, *, everything: bool, repair: bool, yes: bool, as_json: bool, place: PlaceOptions
) -> int | None:
    """List the directories in which the session's agents work: the session's own, and trees of single agents.

    --repair finishes what a crash, a full disk or a moved repository cut short; it says what it will do and asks.
    """
    if context.invoked_subcommand is not None:
        return None
    return _repair(place, yes=yes, as_json=as_json) if repair else _list(place, everything=everything, as_json=as_json)


@workspaces.command()
@click.argument("workspace", type=NAMED)
@yes_option
@json_option
@place_options(session=False)
def remove(workspace: str, *, yes: bool, as_json: bool, place: PlaceOptions) -> int:
    """Remove the directory of an own tree that no living agent uses. Its last state stays in a snapshot."""
    from agentmesh.store import workspaces as rows
    from agentmesh.workspace import repair

    with place.open(place.settings(), "workspaces") as mesh:
        known = mesh.database.run(rows.listing, None, own_only=True, idempotent=True)
        stray = _stray(mesh, workspace, known)
        if stray is not None:
            about, which = f"{mesh.workspaces.folders.of(stray)} belongs to no workspace here, and is removed", stray
        else:
            found = _removable(mesh, _named(workspace, known))
            about = f"The directory {found.path or '(not made yet)'} is removed; its last state stays in a snapshot"
            which = found.id
        if not confirmed(about, yes=yes):
            return FAILED
        done = repair.remove(mesh.workspaces, which)
    if as_json:
        emit({"workspace_id": which, "removed": done.done, "words": done.words})
    else:
        say(done.words)
    return DONE if done.done else FAILED


def _stray(mesh: Mesh, given: str, known: Sequence[WorkspaceView]) -> UUID | None:
    """Return the id of a directory that no workspace here is known to have, if that is what was named in full."""
    try:
        wanted = UUID(given.strip())
    except ValueError:
        return None
    is_known = any(one.id == wanted for one in known)
    return wanted if not is_known and mesh.workspaces.folders.of(wanted).is_dir() else None


def _removable(mesh: Mesh, found: WorkspaceView) -> WorkspaceView:
    """Return the workspace; raise WorkspaceInUse or TreeError if its directory cannot be removed from here."""
    if found.agents:
        raise WorkspaceInUse(
            f"{found.agents[0]} still works in {short(found.id)}", hint="Kill its agents first, or leave it to them."
        )
    if found.path is not None and (found.host, found.os_user) != (mesh.place.host, mesh.place.os_user):
        raise TreeError(f"{found.path} belongs to {found.os_user} on {found.host}", hint="Remove it there.")
    return found


def _named(given: str, known: Sequence[WorkspaceView]) -> WorkspaceView:
    """Return the workspace whose id begins so; raise UnknownWorkspace or UsageError."""
    bounds = beginning_with(given.strip())
    found = [one for one in known if bounds and bounds[0] <= one.id <= bounds[1]]
    if not found:
        hint = "agentmesh workspaces --all lists them. The session's directory is never removed."
        raise UnknownWorkspace(f"there is no tree of an agent's own {one_line(given, 60)!r}", hint=hint)
    if len(found) > 1:
        raise UsageError(f"{one_line(given, 60)!r} fits more than one tree.", hint="Give more of the id.")
    return found[0]


def _list(place: PlaceOptions, *, everything: bool, as_json: bool) -> int:
    from agentmesh.store import workspaces as rows

    def known_in(mesh: Mesh, session: SessionId | None = None) -> tuple[list[WorkspaceView], dict[UUID, list[str]]]:
        known = mesh.database.run(rows.listing, session, idempotent=True)
        return known, _conflicts(mesh, {one.session_id for one in known})

    if everything and place.session is None:
        with all_databases(place, "workspaces") as databases:
            answers = list(databases.ask(known_in).values())
    else:
        with place.mesh("workspaces") as mesh:
            answers = [known_in(mesh, place.find_session(mesh).id)]
    known = [one for some, _ in answers for one in some]
    conflicts = {one: paths for _, some in answers for one, paths in some.items()}
    shown = [one for one in known if everything or one.state != "removed"]
    if as_json:
        emit([_json(one, conflicts.get(one.id, [])) for one in shown])
        return DONE
    from agentmesh.cli.render.workspaces import print_workspaces

    print_workspaces(shown, {one.id: len(conflicts.get(one.id, [])) for one in shown})
    for one in shown:
        if one.problem and one.kind == "own":
            say(f"{short(one.id)}: {one_line(one.problem, 300)}")
    return DONE


def _conflicts(mesh: Mesh, sessions: set[Any]) -> dict[UUID, list[str]]:
    """Return the files of each workspace that conflict with another one's."""
    from agentmesh.store import conflicts

    found: dict[UUID, list[str]] = {}
    for session in sessions:
        for one in mesh.database.run(conflicts.listing, session, idempotent=True):
            found.setdefault(one.a, []).append(one.path)
            found.setdefault(one.b, []).append(one.path)
    return found


def _json(one: WorkspaceView, conflicts: Sequence[str]) -> dict[str, Any]:
    return {
        "workspace_id": one.id,
        "session_id": one.session_id,
        "kind": one.kind,
        "state": one.state,
        "path": one.path,
        "host": one.host,
        "repository": one.repository,
        "problem": one.problem,
        "tree": one.head,
        "merged": one.merged,
        "agents": list(one.agents),
        "snapshots": one.snapshots,
        "conflicts": sorted(set(conflicts)),
        "created_at": one.created_at,
    }


def _repair(place: PlaceOptions, *, yes: bool, as_json: bool) -> int:
    from agentmesh.workspace import repair
    from agentmesh.workspace.results import Fault

    with place.open(place.settings(), "workspaces") as mesh:
        found = repair.look(mesh.workspaces)
        curable = [one for one in found if one.remedy]
        if not as_json:
            for one in found:
                _print(one)
        mended: list[Mended] = []
        if curable and confirmed(f"{len(curable)} of these can be repaired", yes=yes):
            mended = repair.mend(mesh.workspaces, curable)
    if as_json:
        emit({"findings": [_finding(one) for one in found], "mended": [_done(one) for one in mended]})
    else:
        for done in mended:
            say(f"{'✓' if done.done else '✗'} {one_line(done.words, 500)}")
        if not found:
            say("Rows and directories agree.")
    left = [one for one in found if one.fault is not Fault.NO_ROW]  # a stray may be another database's
    return FAILED if len(left) > sum(one.done for one in mended) else DONE


def _print(one: TreeFinding) -> None:
    print(f"{one_line(one.words, 500)}")
    for what, text in (("remedy", one.remedy), ("you can", one.advice)):
        if text:
            print(f"  {what}: {one_line(text, 500)}")


def _finding(one: TreeFinding) -> dict[str, Any]:
    return {"fault": str(one.fault), "subject": one.subject, "words": one.words, "remedy": one.remedy or None} | (
        {"advice": one.advice} if one.advice else {}
    )


def _done(one: Mended) -> dict[str, Any]:
    return {"subject": one.finding.subject, "done": one.done, "words": one.words}
