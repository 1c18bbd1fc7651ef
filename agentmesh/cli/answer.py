"""``agentmesh answer``: requests that wait for a person, and the person's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.named import NAMED
from agentmesh.cli.options import json_option, place_options, text_argument
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit, request_data
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain import jsontext
from agentmesh.domain.errors import UnknownRequest, UsageError
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.rows import Request

_DECISIONS = ("once", "always", "no")


@click.command()
@click.argument("request", type=NAMED, required=False)
@click.argument("answer", required=False)
@click.option("--reason", metavar="TEXT", help="With no: why; the agent reads it.")
@click.option("--arguments", metavar="JSON", help="With once or always: all arguments of the call, instead of its own.")
@click.option("-a", "--all", "everything", is_flag=True, help="List what waits in the newest 50 sessions.")
@json_option
@place_options()
def answer(
    request: str | None,
    answer: str | None,
    *,
    reason: str | None,
    arguments: str | None,
    everything: bool,
    as_json: bool,
    place: PlaceOptions,
) -> None:
    """List what waits for a person; show a REQUEST (the first digits of its id) in full; with an ANSWER, give it.

    \b
      agentmesh answer 3f2a once                   it may run
      agentmesh answer 3f2a once --arguments JSON  it may run, with these arguments
      agentmesh answer 3f2a always                 all similar calls may run too, in this session: see RULES
      agentmesh answer 3f2a no --reason "not now"  it is refused, and the agent reads why
      agentmesh answer 77c0 "the second one"       the answer to a question (`-`: stdin)

    Only a person answers: a command that an agent runs is refused.
    """
    given = {"--reason": reason, "--arguments": arguments}
    if answer is None and (wrong := [name for name, value in given.items() if value is not None]):
        raise UsageError(f"Without an ANSWER there is no use for {' and '.join(wrong)}.")
    with place.mesh("answer") as mesh:
        if request is None:
            _list(_pending(mesh, place, everything=everything), as_json=as_json)
        elif answer is None:
            _show(_resolve(mesh, place, request), as_json=as_json)
        else:
            _answer(mesh, place, request, answer, reason=reason, arguments=arguments, as_json=as_json)


def _pending(mesh: Mesh, place: PlaceOptions, *, everything: bool) -> list[Request]:
    from agentmesh.store import requests, sessions

    if everything and place.session is None:
        chosen = [session.id for session in mesh.database.run(sessions.list_sessions, idempotent=True)]
    else:
        chosen = [place.find_session(mesh).id]
    return [one for session in chosen for one in mesh.database.run(requests.pending, session, idempotent=True)]


def _resolve(mesh: Mesh, place: PlaceOptions, who: str) -> Request:
    """Return the request; with --session, only from that session."""
    from agentmesh.store import requests

    found = mesh.database.run(requests.resolve, who, idempotent=True)
    if place.session is not None and found.session_id != place.find_session(mesh).id:
        raise UnknownRequest(
            f"there is no request {one_line(who, 60)!r} in this session", hint="agentmesh answer --all"
        )
    return found


def _list(found: list[Request], *, as_json: bool) -> None:
    if as_json:
        emit([request_data(request) for request in found])
        return
    from agentmesh.cli.render.requests import print_requests

    if found:
        print_requests(found)
    else:
        say("Nothing waits for a person.")


def _show(request: Request, *, as_json: bool) -> None:
    if as_json:
        emit(request_data(request))
        return
    from agentmesh.cli.render.requests import print_request

    print_request(request)


def _answer(
    mesh: Mesh, place: PlaceOptions, who: str, given: str, *, reason: str | None, arguments: str | None, as_json: bool
) -> None:
    from agentmesh.store import requests, sessions

    request = _resolve(mesh, place, who)
    if request.kind == "question":
        if reason is not None or arguments is not None:
            raise UsageError(f"{request.name} asks a question: its answer is a text, without options.")
        words: dict[str, Any] = {"text": text_argument(given, "answer").strip()}
    else:
        words = _decision(request, given, reason, arguments)
    mesh.database.run(requests.answer, request.id, words, f"{mesh.place.os_user} (agentmesh answer)")
    if as_json:
        emit({"request_id": request.id, "agent_id": request.agent_id, "name": request.name, "answer": words})
    else:
        say(_told(request, words))
        print(request.id)
    start_worker_if_none(mesh, mesh.database.run(sessions.get, request.session_id, idempotent=True))


def _decision(request: Request, given: str, reason: str | None, arguments: str | None) -> dict[str, Any]:
    """Return the answer to an approval."""
    if given not in _DECISIONS:
        raise UsageError(
            f"{request.name} asks whether it may use {request.tool}, and {one_line(given, 40)!r} does not answer that.",
            hint="Answer once, always or no.",
        )
    if reason is not None and given != "no":
        raise UsageError("--reason is for a no.")
    if arguments is not None and given == "no":
        raise UsageError("--arguments are for what is allowed: once or always.")
    words: dict[str, Any] = {"decision": given}
    if reason is not None and reason.strip():
        words["reason"] = reason.strip()
    if arguments is not None:
        words["arguments"] = _arguments(arguments)
    return words


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = jsontext.parse(text)
    except ValueError as error:
        raise UsageError(f"--arguments is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UsageError("--arguments is not a JSON object.", hint='For example: \'{"command": "git push --dry-run"}\'')
    return value


def _told(request: Request, words: dict[str, Any]) -> str:
    from agentmesh.cli.render.requests import rules_text

    match words.get("decision"):
        case None:
            return f"Answered {request.name}."
        case "no":
            return f"Refused {request.tool} for {request.name}."
        case "once":
            return f"Allowed {request.tool} for {request.name}, once."
        case _:
            return f"Allowed from now on, in this session: {rules_text(request)}."
