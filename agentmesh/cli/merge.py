"""``agentmesh merge``: bring the files of an agent's own tree into the tree or directory that it was made from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.confirm import as_sentences, carried_out, yes_option
from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.outcome import DONE, FAILED
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import storable
from agentmesh.workspace.results import MergeStatus

if TYPE_CHECKING:
    from agentmesh.domain.rows import Session
    from agentmesh.workspace.results import MergeResult


@click.command()
@click.argument("agent", type=NAMED)
@click.option("--check", type=NAMED, metavar="COMMAND", help="Run it in the merged files first; it must exit with 0.")
@click.option("--preview", is_flag=True, help="Only show what would change, as a diff.")
@click.option("--down", is_flag=True, help="The other way round: bring the newest files into AGENT's tree.")
@yes_option
@json_option
@place_options()
def merge(
    agent: str, *, check: str | None, preview: bool, down: bool, yes: bool, as_json: bool, place: PlaceOptions
) -> int:
    """Merge the files of AGENT's own tree into the tree, or the directory, that it was made from: all, or nothing.

    If both changed the same places, nothing is written and AGENT is told, with both sides; the exit code is 1. So it is
    if the check fails, or if files changed while it ran. As with git, it is also 1 if a --preview shows conflicts, and
    if --down leaves conflict markers. Before it writes into the session's directory it names the files and asks.

    \b
      agentmesh merge reviewer --preview             what it would change
      agentmesh merge reviewer --check "make test"   only if the tests pass with it
      agentmesh merge reviewer --down                what others merged meanwhile, into its tree
    """
    from agentmesh.app import trees

    if check is not None and preview:
        raise UsageError("--preview changes nothing, so there is nothing to --check.", hint="Leave one of them out.")
    with place.mesh("merge", who=[agent]) as mesh:
        ref, session = find_agent(mesh, place, agent)
        result = trees.merge(mesh, session, ref.id, down=down, preview=True)
        if not preview and result.status is not MergeStatus.NOTHING:

            def write(plan: str | None) -> MergeResult:
                progress = say if check else _silent
                return trees.merge(mesh, session, ref.id, down=down, check=check, agreed=plan, progress=progress)

            done = carried_out(result, partial(_question, session), write, yes=yes or bool(result.target))
            if done is None:
                return FAILED
            result = done
            start_worker_if_none(mesh, session)
    return _tell(result, session, as_json=as_json)


def _silent(_text: str) -> None:
    """Say nothing about a merge that takes no time."""


def _question(session: Session, result: MergeResult, _again: bool) -> str:
    """Return the question before a merge writes into the session's directory; "" for any other merge."""
    from agentmesh.app.tree_words import merge_question

    if result.target or result.conflicts:
        return ""
    return as_sentences(*merge_question(result, session))


def _tell(result: MergeResult, session: Session, *, as_json: bool) -> int:
    """Print what a merge did; return the exit code."""
    from agentmesh.app.tree_words import about_merge, check_output
    from agentmesh.cli.render.files import files_data, print_files, print_patch

    said = about_merge(result, session)
    if as_json:
        emit(_json(result, files_data(result.files)))
    elif result.diff:
        print_patch(f"{result.diff}\n")
    else:
        print_files(result.files)
    if output := check_output(result):
        say(output)
    say(said.text)
    return DONE if said.is_done else FAILED


def _json(result: MergeResult, files: list[dict[str, Any]]) -> dict[str, Any]:
    check = result.check
    return {
        "status": str(result.status),
        "source": result.source,
        "target": result.target or None,
        "merge_id": result.id,
        "files": files,
        "conflicts": [
            {"path": storable(one.path), "ours": _side(one.ours), "theirs": _side(one.theirs)}
            for one in result.conflicts
        ],
        "told": result.owner or None,
        "differs": [storable(path) for path in result.differs],
        "absent": [storable(path) for path in result.absent],
        "in_the_way": [storable(path) for path in result.in_the_way],
        "left_out": [storable(path) for path in result.left_out],
        "check": check
        and {
            "command": check.command,
            "exit_code": check.exit_code,
            "timed_out": check.timed_out,
            "output": storable(check.output),
        },
        "diff": storable(result.diff) or None,
        "note": result.note or None,
    }


def _side(text: str | None) -> str | None:
    return None if text is None else storable(text)
