"""``agentmesh todo``: the board of a session's work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line, printable

if TYPE_CHECKING:
    from agentmesh.store.todos import BoardTodo

_WIDTH = 100
_NUMBER = click.IntRange(1, 2**63 - 1)


@click.command("todo")
@click.option("--add", "content", metavar="TEXT", help="Put this on the board.")
@click.option("--after", type=_NUMBER, multiple=True, metavar="ID", help="With --add: this one must be done first.")
@click.option("--done", type=_NUMBER, metavar="ID", help="Mark this one as done, whoever has it.")
@click.option("--note", metavar="TEXT", help="With --done: what came of it.")
@click.option("--release", type=_NUMBER, metavar="ID", help="Take this one from its owner: it is open again.")
@json_option
@place_options()
def todo(
    *,
    content: str | None,
    after: tuple[int, ...],
    done: int | None,
    note: str | None,
    release: int | None,
    as_json: bool,
    place: PlaceOptions,
) -> None:
    """List what is to be done in the session, or change it.

    Agents add to the board and claim from it with their tool `todo`. Each item has one owner at most. If that agent
    dies, the item is open again.
    """
    from agentmesh.store import todos

    if sum(one is not None for one in (content, done, release)) > 1:
        raise UsageError("--add, --done and --release each change the board; give one of them.")
    if after and content is None:
        raise UsageError("--after belongs to --add.", hint='agentmesh todo --add "write the tests" --after 3')
    if note is not None and done is None:
        raise UsageError("--note belongs to --done.", hint='agentmesh todo --done 3 --note "in tests/"')
    with place.mesh("todo") as mesh:
        session, run = place.find_session(mesh), mesh.database.run
        if content is not None:
            number = run(todos.add_todo, session.id, None, content, after)
            _report({"todo_id": number}, str(number), as_json=as_json, say=print)
        elif done is not None:
            run(todos.finish_todo, session.id, None, done, note, idempotent=True)
            _report({"done": done}, f"Todo {done} is done.", as_json=as_json)
        elif release is not None:
            run(todos.release_todo, session.id, None, release, idempotent=True)
            _report({"released": release}, f"Todo {release} is open.", as_json=as_json)
        else:
            _list(run(todos.board, session.id, idempotent=True), as_json=as_json)


def _list(found: Sequence[BoardTodo], *, as_json: bool) -> None:
    if as_json:
        emit([_data(one) for one in found])
        return
    for one in found:
        print(printable(_line(one)))
    if not found:
        say("Nothing is on the board.")


def _report(data: dict[str, int], words: str, *, as_json: bool, say: Callable[[str], None] = say) -> None:
    if as_json:
        emit(data)
    else:
        say(words)


def _line(one: BoardTodo) -> str:
    owner = f" by {one.owner_name or 'the user'}" if one.status != "open" else ""
    after = f", after {', '.join(map(str, one.after))}" if one.after and one.status == "open" else ""
    note = f": {one_line(one.note, _WIDTH)}" if one.note else ""
    return f"{one.id}  {one_line(one.content, _WIDTH)}  ({one.status}{owner}{after}){note}"


def _data(one: BoardTodo) -> dict[str, object]:
    owner = {"agent_id": one.owner, "name": one.owner_name} if one.owner else None
    return {
        "todo_id": one.id,
        "content": one.content,
        "after": list(one.after),
        "status": one.status,
        "ready": one.is_ready,
        "owner": owner,
        "added_by": one.created_by_name,
        "note": one.note,
    }
