"""``agentmesh run`` and ``agentmesh demo``: a prompt in, the root's last answer out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from agentmesh.cli.allowing import allow_for_session, allow_options, allow_rule
from agentmesh.cli.attached import References, attached
from agentmesh.cli.limits import changes_of, limit_options
from agentmesh.cli.options import image_option, json_option, place_options, text_argument
from agentmesh.cli.parameter_types import NAMED, Number
from agentmesh.cli.piped import PATIENCE, Piped, beside_prompt, has_input, joined
from agentmesh.cli.place import PlaceOptions, here
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import require_provider
from agentmesh.cli.talk import complain, say
from agentmesh.domain.budgets import token_cap
from agentmesh.domain.errors import UsageError
from agentmesh.domain.figures import count, listed, money, plural
from agentmesh.domain.ids import short
from agentmesh.domain.rows import Session
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line, printable
from agentmesh.llm.import_ahead import import_ahead
from agentmesh.store.sizes import POOL_SIZE
from agentmesh.tools.environment import conceal_process

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.custom_message import MessageText
    from agentmesh.cli.headless import Result
    from agentmesh.store.processes import Process

_MODES = [str(mode) for mode in PermissionMode]
_MOST_RULES = 8
"""Rules that are named at the end; if there are more, naming the mode is shorter."""
_FAILED = 5
"""Agents whose errors are printed at the end of a run."""
_NAMED = 3
"""Commands in the background that a line names; the others are counted."""
_COMMAND = 80
"""Letters of such a command."""
_SECONDS = Number(min=0, min_open=True)


@click.command()
@click.argument("prompt", required=False)
@click.option("--model", type=NAMED, metavar="NAME", help="Model of a new session: NAME, PROVIDER/NAME, or `demo`.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest session of this directory.")
@click.option("--resume", type=NAMED, metavar="ID", help="Go on with this session.")
@click.option(
    "--permission-mode",
    type=click.Choice(_MODES),
    help="What tools may do; here `ask` refuses, since nobody can answer.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="RULE",
    help='Allow what a rule matches, as in "bash(pytest *)", for the whole session; may be given more than once.',
)
@click.option("--timeout", type=_SECONDS, metavar="SECONDS", help="Interrupt all agents after this time; exit code 3.")
@click.option("--max-cost", type=Number(min=0), metavar="USD", help="Cost cap of a new session.")
@limit_options("turns", "time")
@click.option("--concurrency", type=click.IntRange(1, 1000), metavar="N", help="Model calls and tools at once.")
@click.option("--title", default="", help="Title of a new session.")
@image_option
@json_option
@place_options(session_help="The same as --resume.", logs=True)
def run(
    prompt: str | None,
    *,
    model: str | None,
    go_on: bool,
    resume: str | None,
    permission_mode: str | None,
    allow: tuple[str, ...],
    timeout: float | None,
    max_cost: float | None,
    concurrency: int | None,
    title: str,
    images: tuple[str, ...],
    as_json: bool,
    place: PlaceOptions,
    **limits: str | None,
) -> int:
    """Give PROMPT (`-` or a pipe: stdin) to a new mesh, run its agents, and print the root's last answer.

    Text that is piped in besides a PROMPT goes with it: git diff | agentmesh run "Review this". A PROMPT of /NAME with
    arguments sends the custom command or skill of that name. `@shot.png` in a PROMPT that is an argument shows that
    image of this directory to the model. Ctrl+C interrupts all agents; a second one leaves at once.

    Ends when the root and all others are idle or dead. What they left running in the background ends then: an agent
    that needs the end of a command waits for it.

    With --resume or --continue, and without a PROMPT, agents that had not finished work on, and the root's last turn
    is run again if it failed or was interrupted.
    """
    if resume and (go_on or place.session):
        raise UsageError("--resume, --continue and --session each name the session to go on with; give one of them.")
    place = place._replace(session=resume or place.session)
    is_new = not (go_on or place.session)
    if not is_new:
        _refuse_changes(model=model, max_cost=max_cost, title=title)
    allowed = [allow_rule(rule) for rule in allow]
    changes = changes_of(limits)
    asked = _read_prompt(prompt, timeout, is_needed=is_new or bool(images))
    conceal_process()
    import_ahead()
    settings: dict[str, Any] = {"max_cost_usd": max_cost, "concurrency": concurrency}
    with place.mesh("run", begins=is_new, pool_size=POOL_SIZE, **settings) as mesh:
        mode = PermissionMode(permission_mode) if permission_mode else None
        if is_new:
            model = model or _model_of(mesh, asked.argument)
            session = mesh.start_session(here(), model=model, title=title or _title(asked.text or ""), mode=mode)
        else:
            session = _resumed(mesh, place, mode)
        _set_limits(mesh, session, changes)
        allow_for_session(mesh, session, allowed)
        _remark(mesh, session)
        text, shown = _message(mesh, session, asked, images, is_new=is_new)
        return _run(mesh, session, text, shown, concurrency=concurrency, timeout=timeout, as_json=as_json)


@click.command()
@click.option("--timeout", type=_SECONDS, metavar="SECONDS", help="Interrupt all agents after this time; exit code 3.")
@json_option
@place_options(session=False, logs=True)
def demo(timeout: float | None, *, as_json: bool, place: PlaceOptions) -> int:
    """Run a scripted model on this directory: it forks, sends, waits, kills and uses tools.

    No key is needed. Only the model is scripted: processes, HTTP, database, messages and tools are real.
    """
    from agentmesh.llm.simulator.demo import DEMO_MODEL, DEMO_PROMPT

    say("The model of this demo is a script; everything else is real. In another terminal: agentmesh tree")
    conceal_process()
    import_ahead()
    with place.mesh("demo", begins=True, pool_size=POOL_SIZE) as mesh:
        session = mesh.start_session(here(), model=DEMO_MODEL, title="demo")
        code = _run(mesh, session, DEMO_PROMPT, (), concurrency=None, timeout=timeout, as_json=as_json)
    say('With a real model:  OPENAI_BASE_URL=... OPENAI_API_KEY=... agentmesh run --model NAME "prompt"')
    return code


class _Prompt(NamedTuple):
    """What the user asks for."""

    text: str | None
    """Given as an argument or by stdin; None: agents only go on with what is unfinished."""
    argument: str
    """The text if it is an argument: only there `/NAME` is a command and `@` names an image."""
    piped: Piped | None
    """What was piped in besides an argument."""


def _read_prompt(prompt: str | None, timeout: float | None, *, is_needed: bool) -> _Prompt:
    """Read all that the user asks for; raise UsageError if a text is needed and there is none."""
    is_given = is_needed or prompt is not None or has_input()
    text = text_argument(prompt, "prompt", patience=min(timeout or PATIENCE, PATIENCE)) if is_given else None
    argument = "" if prompt in (None, "-") else prompt
    return _Prompt(text, argument, beside_prompt(timeout) if argument else None)


def _refuse_changes(**given: str | float | None) -> None:
    """Refuse options that only a new session can have."""
    if names := [name for name, value in given.items() if value not in (None, "")]:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        raise UsageError(f"{options} cannot be changed in an existing session.", hint="Leave it out.")


def _resumed(mesh: Mesh, place: PlaceOptions, mode: PermissionMode | None) -> Session:
    """Return the session to go on with, in another mode if one is given; raise NoModel if it has no usable model."""
    from agentmesh.store import sessions

    session = place.find_session(mesh)
    require_provider(mesh, session)
    if mode:
        mesh.database.run(sessions.set_mode, session.id, mode, idempotent=True)
    return session


def _set_limits(mesh: Mesh, session: Session, limits: dict[str, int | None]) -> None:
    from agentmesh.store.limits import set_limits

    if limits:
        mesh.database.run(set_limits, session.id, limits, idempotent=True)


def _run(
    mesh: Mesh,
    session: Session,
    prompt: str | None,
    images: References,
    *,
    concurrency: int | None,
    timeout: float | None,
    as_json: bool,
) -> int:
    from agentmesh.cli.headless import Headless, failure
    from agentmesh.cli.logs import on_stderr
    from agentmesh.cli.render.progress import progress
    from agentmesh.store import requests

    # Nobody is here to answer: refuse such calls instead of waiting for ever.
    mesh.database.run(requests.set_attended, session.id, False, idempotent=True)

    if as_json:
        emit(
            {
                "type": "session",
                "agent_id": session.root_id,
                "name": "root",
                "parent_id": None,
                "session_id": session.id,
            }
        )
    quiet = as_json or on_stderr(mesh.settings)
    running = Headless(mesh, session, progress(quiet=quiet), emit if as_json else None)
    result = running.run(prompt, images, concurrency=concurrency, timeout=timeout)
    _sum_up(session, result)
    if prompt is None or result.failed:
        _tell_failed(mesh, session)
    if as_json:
        emit(_data(session, result))
    elif result.status == "completed" or (result.status == "limit" and result.text):
        print(printable(result.text), flush=True)
    if error := failure(result):
        raise error
    return 0


def _sum_up(session: Session, result: Result) -> None:
    """Print what the run used, and what was not permitted."""
    say(
        f"{result.status} in {result.seconds:.1f} s: {plural(result.agents, 'agent')}, {count(result.tokens)} tokens, "
        f"cost {money(result.cost_usd)}. Go on with: agentmesh run --resume {short(session.id)}"
    )
    if result.cost_usd is None and result.tokens and session.max_cost_usd is not None:
        say(
            "No price is known for the calls of its model: "
            f"the cost cap of {money(session.max_cost_usd)} counts known cost only. " + token_cap(session.max_tokens)
        )
    for path, error in sorted(result.failed.items())[:_FAILED]:
        say(f"{path} ended with an error: {one_line(error, 300)}")
    if len(result.failed) > _FAILED:
        say(f"So did {len(result.failed) - _FAILED} more; agentmesh tree names all.")
    for path, why in sorted(result.unfinished.items())[:_FAILED]:
        say(f"The last answer of {path} is {why}.")
    if len(result.unfinished) > _FAILED:
        say(f"So it is with {len(result.unfinished) - _FAILED} more; agentmesh log NAME shows each.")
    if result.remark:
        say(f"The root's last answer is {result.remark}.")
    _sum_up_background(result)
    for flag, tools in sorted(result.refused.items()):
        rules = result.allow.get(flag, [])
        ways = [" ".join(allow_options(rules))] if rules and len(rules) <= _MOST_RULES else []
        say(f"Not permitted: {', '.join(sorted(tools))}. This allows it: {', or '.join([*ways, flag])}")
    if result.denied:
        say(f"Not permitted in any mode: {', '.join(sorted(result.denied))}.")
    if result.unasked:
        questions = plural(result.unasked, "question")
        say(f"Nobody was here to answer {questions}. In the terminal UI agents can ask: --resume {short(session.id)}")


def _sum_up_background(result: Result) -> None:
    """Print which commands ended with the run, and what it leaves to another worker."""
    ended = [one for one in result.processes if one.state != "running"]
    going_on = [one for one in result.processes if one.state == "running"]
    if ended:
        say(f"Ended with the run: {_commands(ended)}. A run goes on only while an agent works, or waits for a command.")
    if going_on:
        say(f"Goes on with another worker: {_commands(going_on)}. agentmesh processes --stop ID ends one.")
    if result.timers:
        first = f"{result.timers[0].due_at.astimezone():%Y-%m-%d %H:%M:%S}"
        say(
            f"Due later, if a worker runs then (agentmesh worker): {plural(len(result.timers), 'message')}, "
            f"the first at {first}."
        )


def _commands(of: Sequence[Process]) -> str:
    """Return how many commands these are, and what the first of them say."""
    named = "; ".join(f"{one.agent_name}: {one_line(one.command, _COMMAND)}" for one in of[:_NAMED])
    more = f"; and {len(of) - _NAMED:,} more" if len(of) > _NAMED else ""
    return f"{plural(len(of), 'command')} in the background ({named}{more})"


def _tell_failed(mesh: Mesh, session: Session) -> None:
    """Print which agents below the root failed in this run or an earlier one, and how they go on."""
    from agentmesh.store import person

    failed = mesh.database.run(person.failed, session.id, idempotent=True)
    if names := [ref.name for ref in failed if ref.id != session.root_id]:
        how = f"agentmesh retry --all --session {short(session.id)}"
        say(f"The last turn of {plural(len(names), 'agent')} failed: {listed(names, _FAILED)}. Run again: {how}")


def _data(session: Session, result: Result) -> dict[str, Any]:
    """Return the last line of ``--json``."""
    from agentmesh.cli.processes import process_data
    from agentmesh.cli.timers import timer_data

    data = asdict(result)
    ended = (
        {"result": data.pop("text")} if result.status == "completed" else {"error": result.error, "hint": result.hint}
    )
    if result.status == "limit" and result.text:
        ended["result"] = result.text  # the root was done; agents below it were not
    for used in ("text", "error", "hint", "remark", "denied", "unasked", "allow"):
        data.pop(used, None)
    data["refused"] = [
        {"allow_with": flag, "allow_rules": result.allow.get(flag, []), "tools": sorted(tools)}
        for flag, tools in sorted(result.refused.items())
    ]
    data["processes"] = [process_data(one) for one in result.processes]
    data["timers"] = [timer_data(one) for one in result.timers]
    root = {"agent_id": session.root_id, "name": "root", "parent_id": None}
    return {"type": "result", **root, "session_id": session.id, **data, **ended}


def _remark(mesh: Mesh, session: Session) -> None:
    """Print what is wrong with the files that guide the session's agents."""
    from agentmesh.config.remarks import summary

    for line in summary(mesh.remarks(Path(session.workdir))):
        complain(line)


def _message(
    mesh: Mesh, session: Session, prompt: _Prompt, paths: Sequence[str], *, is_new: bool
) -> tuple[str | None, References]:
    """Return the text and the images to send: custom commands are expanded, and text that was piped in is added."""
    text, words = prompt.text, prompt.argument
    if text and words.startswith("/"):
        text, words, _ = _expanded(mesh, session, text, is_new=is_new)
    images = attached(mesh, session, session.root_id, words, paths)
    return joined(text, prompt.piped) if text and prompt.piped else text, images


def _model_of(mesh: Mesh, prompt: str) -> str | None:
    """Return the model that a custom command asks for: a new session has no other conversation."""
    from agentmesh.config.custom_commands import called

    found = called(prompt, mesh.custom_commands(here()).now())
    return found[0].model or None if found else None


def _expanded(mesh: Mesh, session: Session, text: str, *, is_new: bool) -> MessageText:
    """Return the message of a custom command; other text unchanged. Nobody can be asked here."""
    from agentmesh.app.custom_message import CustomMessage, MessageText
    from agentmesh.config.custom_commands import called

    known = mesh.custom_commands(Path(session.workdir)).now()
    found = called(text, known)
    if found is None:
        _tell_unknown(text, known)
        return MessageText(text, text)
    command, arguments = found
    if command.agent:
        raise UsageError(
            f"/{command.name} is for an agent of type {command.agent}, and `agentmesh run` makes none.",
            hint="Call it on the screen, where a child of that type gets it.",
        )
    if command.makes_child and not is_new:
        key = "subtask" if command.is_subtask else "model"
        hint = "Call it in a new session, or on the screen, where a child gets it."
        raise UsageError(f"/{command.name} has `{key}` in its file: it is not for an agent that has worked.", hint=hint)
    message = CustomMessage(mesh, session.root_id, command, arguments)
    if message.asks:
        ways = " ".join(allow_options(message.rules))
        hint = f"This allows it: {ways}" if ways else "--permission-mode all allows it."
        raise UsageError(f"/{command.name} would run what needs a yes: {'; '.join(message.asks)}.", hint=hint)
    filled = message.run()
    if filled.missing:
        complain(f"No file of text here, so its name is sent: {', '.join(map(printable, filled.missing))}")
    if not filled.text.strip():
        raise UsageError(f"{text.strip()} is empty without arguments.", hint='Give them: "/NAME arguments".')
    return filled


def _tell_unknown(text: str, known: Iterable[str]) -> None:
    """Print that a text is no custom command though it looks like one; a path does not, nor what is there."""
    found = re.match(r"/([a-z][\w:.-]{0,63})(?![^\s])", text, re.IGNORECASE)
    if found and not Path(found[0]).exists():
        near = difflib.get_close_matches(found[1].lower(), known, n=1)
        meant = f" Did you mean /{near[0]}?" if near else ""
        complain(f"There is no custom command /{found[1]}: it is sent as text.{meant}")


def _title(prompt: str) -> str:
    return one_line(prompt, 60)
