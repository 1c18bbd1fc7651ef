"""``agentmesh undo``, ``redo`` and ``rewind``: take back what an agent did, in its files and its conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.confirm import as_sentences, carried_out, yes_option
from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.fork import agent_and_row
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.outcome import DONE, FAILED
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import storable

if TYPE_CHECKING:
    from agentmesh.app.tree_words import Said
    from agentmesh.workspace.results import Undone

_only_files = click.option("--files", is_flag=True, help="Only the files; the conversation stays.")
_only_conversation = click.option("--conversation", is_flag=True, help="Only the conversation; the files stay.")
_preview = click.option("--preview", is_flag=True, help="Only say what it would write.")


@click.command()
@click.argument("agent", type=NAMED)
@click.argument("paths", nargs=-1, type=NAMED, metavar="[PATH]...")
@_only_files
@_only_conversation
@_preview
@yes_option
@json_option
@place_options()
def undo(agent: str, paths: Sequence[str], *, place: PlaceOptions, **how: Any) -> int:
    """Take back the newest turn of AGENT: what it changed in files, also by commands, and its conversation.

    With PATHs only these files or folders; a path that AGENT has not changed there is refused. They are absolute or
    relative to the current directory, or else to the session's. AGENT must be idle. It names the files and asks. If
    somebody else has changed one of them since, nothing is written: the exit code is 1, and PATHs take back the others.
    `agentmesh redo AGENT` brings it back.
    """
    from agentmesh.workspace import undo as undoing

    return _take_back(place, agent, paths, how, undoing.undo, f"agentmesh undo {agent}")


@click.command()
@click.argument("point", type=NAMED, metavar="AGENT:ROW")
@click.argument("paths", nargs=-1, type=NAMED, metavar="[PATH]...")
@_only_files
@_only_conversation
@_preview
@yes_option
@json_option
@place_options()
def rewind(point: str, paths: Sequence[str], *, place: PlaceOptions, **how: Any) -> int:
    """Take back all that an agent did after a ROW of its conversation, in files and in the conversation; see undo.

    `agentmesh log AGENT --rows` shows the numbers.
    """
    from agentmesh.workspace import undo as undoing

    agent, row = agent_and_row(point)

    def back(workspaces: Any, who: Any, **options: Any) -> Undone:
        return undoing.rewind(workspaces, who, row, **options)

    return _take_back(place, agent, paths, how, back, f"agentmesh rewind {agent}:{row}")


@click.command()
@click.argument("agent", type=NAMED)
@_only_files
@_only_conversation
@yes_option
@json_option
@place_options()
def redo(agent: str, *, files: bool, conversation: bool, yes: bool, as_json: bool, place: PlaceOptions) -> int:
    """Bring back what the newest undo or rewind of AGENT took back, unless AGENT has worked since."""
    from agentmesh.app.tree_words import about_redo, redo_question
    from agentmesh.workspace import undo as undoing

    parts = _parts(files=files, conversation=conversation)
    with place.mesh("redo", who=[agent]) as mesh:
        ref, _ = find_agent(mesh, place, agent)
        redone = partial(undoing.redo, mesh.workspaces, ref.id, **parts)
        result = redone(preview=True)
        if not result.refused:
            done = carried_out(
                result,
                _if_it_writes(lambda found: as_sentences(*redo_question(found))),
                lambda plan: redone(agreed=plan),
                yes=yes,
            )
            if done is None:
                return FAILED
            result = done
    return _tell(result, about_redo(result), as_json=as_json)


def _take_back(
    place: PlaceOptions,
    agent: str,
    paths: Sequence[str],
    how: dict[str, Any],
    back: Callable[..., Undone],
    command: str,
) -> int:
    """Look, ask, and take back; return the exit code."""
    from agentmesh.app.tree_words import about_undo
    from agentmesh.workspace.naming import named
    from agentmesh.workspace.results import UndoStatus

    parts = _parts(files=how["files"], conversation=how["conversation"])
    if paths and how["conversation"]:
        raise UsageError("With PATHs only files are taken back.", hint="Leave out --conversation, or the PATHs.")
    parts["conversation"] = parts["conversation"] and not paths
    with place.mesh("undo", who=[agent]) as mesh:
        ref, _ = find_agent(mesh, place, agent)
        parts["paths"] = named(mesh.workspaces, ref.id, paths, here()) or None
        taken_back = partial(back, mesh.workspaces, ref.id, **parts)
        result = taken_back(preview=True)
        if result.status is not UndoStatus.REFUSED and not how["preview"]:
            done = carried_out(result, _if_it_writes(_what), lambda plan: taken_back(agreed=plan), yes=how["yes"])
            if done is None:
                return FAILED
            result = done
    again, alone = f"`agentmesh redo {ref.name}` brings it back.", f"`{command} PATH` takes back single files."
    return _tell(result, about_undo(result, again=again, alone=alone), as_json=how["as_json"])


def _if_it_writes(question: Callable[[Undone], str]) -> Callable[[Undone, bool], str]:
    """Return a function that asks if files are written, or if the plan that was agreed to has changed."""
    return lambda result, again: question(result) if result.files or again else ""


def _what(result: Undone) -> str:
    from agentmesh.app.tree_words import undo_question

    return as_sentences(*undo_question(result))


def _parts(*, files: bool, conversation: bool) -> dict[str, Any]:
    """Return whether to take back files and conversation: both unless one is named."""
    return {"files": files or not conversation, "conversation": conversation or not files}


def _tell(result: Undone, said: Said, *, as_json: bool) -> int:
    from agentmesh.cli.render.files import files_data, print_files

    if as_json:
        refused = [{"path": storable(one.path), "by": one.by or None} for one in result.refused]
        emit(
            {
                "status": str(result.status),
                "name": result.agent,
                "seq": result.row,
                "files": files_data(result.files),
                "by_command": [storable(path) for path in result.by_command],
                "refused": refused,
                "merges_undone": list(result.merges),
                "note": result.note or None,
            }
        )
    else:
        print_files(result.files)
    say(said.text)
    return DONE if said.is_done else FAILED
