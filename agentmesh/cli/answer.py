"""``agentmesh answer``: requests that wait for a person, and the person's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentmesh.cli.all_databases import all_databases
from agentmesh.cli.options import json_option, place_options, text_argument
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions, complain_without
from agentmesh.cli.render.data import emit, request_data
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain import fan_out, jsontext
from agentmesh.domain.errors import RequestOver, UnknownRequest, UsageError
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import Request

_DECISIONS = ("once", "always", "no")


def _named(context: click.Context, parameter: click.Parameter, words: Sequence[str]) -> Sequence[str]:
    """Refuse an empty request. The last of several words is the answer, which may be any text."""
    return [*(NAMED.convert(word, parameter, context) for word in words[:-1] or words), *words[1:][-1:]]


@click.command()
@click.argument("words", nargs=-1, metavar="[REQUEST]... [ANSWER]", callback=_named)
@click.option("--reason", metavar="TEXT", help="With no: why; the agent reads it.")
@click.option("--arguments", metavar="JSON", help="With once or always: all arguments of the call, instead of its own.")
@click.option("-a", "--all", "everything", is_flag=True, help="List what waits in all sessions.")
@json_option
@place_options()
def answer(
    words: Sequence[str],
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
      agentmesh answer 3f2a 9c1b 77d0 once         each of them may run
      agentmesh answer 3f2a once --arguments JSON  it may run, with these arguments
      agentmesh answer 3f2a always                 all similar calls may run too, in this session: see RULES
      agentmesh answer 3f2a no --reason "not now"  it is refused, and the agent reads why
      agentmesh answer 77c0 "the second one"       the answer to a question (`-`: stdin)

    Only a person answers: a command that an agent runs is refused.
    """
    chosen, answer = words[:-1] or words, words[-1] if words[1:] else None
    given = {"--reason": reason, "--arguments": arguments}
    if answer is None and (wrong := [name for name, value in given.items() if value is not None]):
        raise UsageError(f"Without an ANSWER there is no use for {' and '.join(wrong)}.")
    if not chosen and everything and place.session is None:
        _list(_everywhere(place), as_json=as_json)
        return
    with _opened(place, chosen) as mesh:
        requests = [_resolve(mesh, place, who) for who in chosen]
        if not requests:
            _list(_pending(mesh, place.find_session(mesh).id), as_json=as_json)
        elif answer is None:
            _show(requests[0], as_json=as_json)
        else:
            _check_together(requests)
            _answer(mesh, requests, answer, reason=reason, arguments=arguments, as_json=as_json)


def _opened(place: PlaceOptions, chosen: Sequence[str]) -> Mesh:
    """Open the database that has the first of these requests, or that of the session."""
    from agentmesh.store import requests

    settings = place.settings()
    databases = place.databases(settings, "answer")
    if databases is None:
        return place.open(settings, "answer")
    if not chosen or place.session is not None:
        return place.mesh_of(settings, "answer")

    def has_it(mesh: Mesh) -> bool:
        try:
            mesh.database.run(requests.resolve, chosen[0], idempotent=True)
        except UnknownRequest:
            return False
        return True

    try:
        answers = databases.ask(has_it).some()
        having = [name for name, known in answers.items() if known]
        if not having:
            complain_without(databases.silent)
        mesh = databases.mesh((having or list(answers))[0])
        databases.close(keep=mesh)
    except BaseException:
        databases.close()
        raise
    return mesh


def _everywhere(place: PlaceOptions) -> list[Request]:
    """Return the requests of all sessions in all databases."""
    from agentmesh.store import requests

    def pending_in(mesh: Mesh) -> list[Request]:
        return mesh.database.run(requests.everywhere, idempotent=True)

    with all_databases(place, "answer") as databases:
        return [one for some in databases.ask(pending_in).values() for one in some]


def _pending(mesh: Mesh, session: SessionId) -> list[Request]:
    from agentmesh.store import requests

    return mesh.database.run(requests.pending, session, idempotent=True)


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


def _check_together(requests: Sequence[Request]) -> None:
    """Raise UsageError for several requests that cannot have the same answer."""
    if len(requests) == 1:
        return
    if question := next((one for one in requests if one.kind == "question"), None):
        raise UsageError(f"{question.name} asks a question: answer it alone.")
    if len({one.id for one in requests}) < len(requests):
        raise UsageError("One request is named twice.", hint="The last word is the answer: once, always or no.")


def _answer(
    mesh: Mesh, chosen: Sequence[Request], given: str, *, reason: str | None, arguments: str | None, as_json: bool
) -> None:
    """Answer each request; one that is over keeps no other from its answer, and is raised at the end."""
    from agentmesh.store import requests, sessions

    words = [_words(request, given, reason, arguments) for request in chosen]
    answered, over = [], None
    for request, said in zip(chosen, words, strict=True):
        try:
            mesh.database.run(requests.answer, request.id, said, f"{mesh.place.os_user} (agentmesh answer)")
        except RequestOver as error:
            over = error
            continue
        answered.append({"request_id": request.id, "agent_id": request.agent_id, "name": request.name, "answer": said})
        if not as_json:
            say(_sentence(request, said))
            print(request.id)
    if as_json and answered:
        emit(answered[0] if len(chosen) == 1 else answered)
    for session in {request.session_id for request in chosen}:
        start_worker_if_none(mesh, mesh.database.run(sessions.get, session, idempotent=True))
    if over is not None:
        raise over


def _words(request: Request, given: str, reason: str | None, arguments: str | None) -> dict[str, Any]:
    """Return the answer to a request as the database takes it."""
    if request.kind != "question":
        return _decision(request, given, reason, arguments)
    if reason is not None or arguments is not None:
        raise UsageError(f"{request.name} asks a question: its answer is a text, without options.")
    return {"text": text_argument(given, "answer").strip()}


def _decision(request: Request, given: str, reason: str | None, arguments: str | None) -> dict[str, Any]:
    """Return the answer to an approval."""
    if given not in _DECISIONS:
        raise UsageError(
            f"{request.name} asks whether it may {fan_out.wish(request.tool, request.agents)}, and "
            f"{one_line(given, 40)!r} does not answer that.",
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


def _sentence(request: Request, words: dict[str, Any]) -> str:
    from agentmesh.cli.render.requests import rules_text

    if request.agents is not None and not request.rules:
        return fan_out.answered(request.name, request.agents, words["decision"])
    match words.get("decision"):
        case None:
            return f"Answered {request.name}."
        case "no":
            return f"Refused {request.tool} for {request.name}."
        case "once":
            return f"Allowed {request.tool} for {request.name}, once."
        case _:
            return f"Allowed from now on, in this session: {rules_text(request)}."
