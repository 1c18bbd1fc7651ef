"""``agentmesh send``, ``kill``, ``rename``, ``reap``, ``interrupt`` and ``background``: the verbs for people."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from agentmesh.app.each_agent import to_each
from agentmesh.cli.attached import attached
from agentmesh.cli.each_agent import print_each
from agentmesh.cli.find_agents import addressee, find_agent, find_agents
from agentmesh.cli.options import image_option, json_option, place_options, text_argument
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.send_several import goes_to_several, require_plain, send_to_several
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import complain, say
from agentmesh.cli.timers import send_later, when_of
from agentmesh.domain.errors import Refused, UsageError
from agentmesh.domain.figures import listed, plural
from agentmesh.domain.ids import MailId, SessionId
from agentmesh.domain.rows import Ref
from agentmesh.domain.states import AgentStatus

if TYPE_CHECKING:
    from agentmesh.app import Mesh

_NAMED = 5
"""Agents that a sentence names; it counts the others."""


@click.command()
@click.argument("agent", type=NAMED)
@click.argument("message", required=False)
@click.option(
    "--key", type=NAMED, metavar="TEXT", help="Messages with the same key are one message: a retry sends nothing twice."
)
@image_option
@click.option("--after", type=NAMED, metavar="SPAN", help="Deliver it later: after 90s, 10m, 2h or 1d.")
@click.option("--at", type=NAMED, metavar="TIME", help="Deliver it later: at 2026-11-22T14:30+01:00.")
@click.option("--every", type=NAMED, metavar="SPAN", help="Repeat it: every 60s or more.")
@click.option(
    "--cron", type=NAMED, metavar="TIMES", help='Repeat it: "0 9 * * 1-5 Europe/Berlin"; zone: this machine\'s.'
)
@click.option("--urgent", is_flag=True, help="Calls that the agent has not started when it comes are not run.")
@click.option(
    "--reply-to", type=click.IntRange(1), metavar="ID", help="The message that it answers; AGENT may be left out."
)
@json_option
@place_options()
def send(
    agent: str,
    message: str | None,
    *,
    key: str | None,
    images: tuple[str, ...],
    urgent: bool,
    reply_to: int | None,
    as_json: bool,
    place: PlaceOptions,
    **times: str | None,
) -> None:
    """Write MESSAGE (`-` or a pipe: stdin) to AGENT, as the user. Prints the message's id.

    AGENT may be several, `a,b,c`, or `children` (the root's living children) or `session` (all living agents): all of
    them get it in one commit, or none. Prints the id for each.

    With --reply-to alone the only argument is MESSAGE: it goes to the agent that sent the message ID (to its recipient,
    if you sent it). `agentmesh mail` and `agentmesh log --full` show ids.

    `@shot.png` in a MESSAGE that is an argument attaches that image of the session's directory.
    """
    from agentmesh.store import mailbox

    when = when_of(**times)
    answered = None if reply_to is None else MailId(reply_to)
    if when.is_later and (urgent or answered):
        raise UsageError("A later message answers none and is not urgent.", hint="Leave that out, or send it now.")
    who, words = (None, agent) if answered and message is None else (agent, message)
    text = text_argument(words, "message")
    with place.mesh("send", who=who.split(",") if who else ()) as mesh:
        if who and goes_to_several(who):
            require_plain(when, images, answered)
            send_to_several(mesh, place, who, text, key, urgent=urgent, as_json=as_json)
            return
        if who is None and answered:
            ref, session = addressee(mesh, place, answered)
        else:
            ref, session = find_agent(mesh, place, who or agent)
        known = attached(mesh, session, ref.id, "" if words in (None, "-") else text, images)
        if when.is_later:
            send_later(mesh, session, ref, text, when, key, known, as_json=as_json)
            return
        sending = partial(mailbox.send, urgent=urgent, reply_to=answered)
        mail = mesh.database.run(sending, None, ref.id, text, key, None, known, idempotent=key is not None)
        if as_json:
            emit({"status": "sent", "to": ref.json(), "message_id": mail})
        else:
            say(f"Sent to {ref.label}.")
            print(mail)
        start_worker_if_none(mesh, session)


@click.command()
@click.argument("agents", metavar="AGENT...", type=NAMED, nargs=-1, required=True)
@json_option
@place_options()
def kill(agents: tuple[str, ...], *, as_json: bool, place: PlaceOptions) -> None:
    """End each AGENT and all its descendants for good. Prints the agents that died."""
    from agentmesh.store.agents import kill as end

    with place.mesh("kill", who=agents) as mesh:
        refs = list(find_agents(mesh, place, agents))
        killed, refused = to_each(refs, lambda ref: mesh.database.run(end, ref.id, idempotent=True))
    print_each("killed", killed, refused, as_json=as_json)
    if not killed and not as_json:
        say(f"{_labels(refs)} dead already.")


@click.command()
@click.argument("agent", type=NAMED)
@click.argument("name", type=NAMED)
@json_option
@place_options()
def rename(agent: str, name: str, *, as_json: bool, place: PlaceOptions) -> None:
    """Give AGENT another NAME, by the rule of fork. Its id, mail and waits stay. Prints the name."""
    from agentmesh.store import agents

    with place.mesh("rename", who=[agent]) as mesh:
        ref, _ = find_agent(mesh, place, agent)
        named = Ref(ref.id, mesh.database.run(agents.rename, ref.id, name, idempotent=True))
    if as_json:
        emit({**named.json(), "was": ref.name})
    else:
        say(f"{ref.label} is {named.name} now." if named.name != ref.name else f"{ref.label} has this name already.")
        print(named.name)


@click.command()
@click.argument("agent", type=NAMED, required=False)
@json_option
@place_options()
def reap(agent: str | None, *, as_json: bool, place: PlaceOptions) -> None:
    """Hide the session's dead agents, or only AGENT. Their conversations stay readable."""
    from agentmesh.store import sessions

    with place.mesh("reap", who=[agent] if agent else ()) as mesh:
        if agent is None:
            ref, session = None, place.find_session(mesh)
        else:
            ref, session = find_agent(mesh, place, agent)
        count = mesh.database.run(sessions.reap, session.id, ref.id if ref else None, idempotent=True)
    if as_json:
        emit({"reaped": count})
    else:
        say(f"{plural(count, 'agent')} hidden.")


@click.command()
@click.argument("agent", type=NAMED)
@json_option
@place_options()
def background(agent: str, *, as_json: bool, place: PlaceOptions) -> None:
    """Let the task of the sub-agent AGENT go on while its parent goes on too; the result comes to that as a message."""
    from agentmesh.store import agents

    with place.mesh("background", who=[agent]) as mesh:
        ref = find_agent(mesh, place, agent)[0]
        mesh.database.run(agents.background, ref.id)
    if as_json:
        emit(ref.json())
        return
    print(f"{ref.id}  {ref.name}")


@click.command()
@click.argument("agents", metavar="[AGENT]...", type=NAMED, nargs=-1)
@click.option("--all", "everybody", is_flag=True, help="All running agents of the session.")
@json_option
@place_options()
def interrupt(agents: tuple[str, ...], *, everybody: bool, as_json: bool, place: PlaceOptions) -> None:
    """Stop what each AGENT (or --all) does now. It stays idle until it gets a message. Prints the stopped agents."""
    from agentmesh.store.agents import interrupt as stop

    if bool(agents) == everybody:
        raise UsageError("Which agents should be interrupted?", hint="Name them, or give --all.")
    refs: Sequence[Ref] = ()
    refused: Sequence[Refused] = ()
    with place.mesh("interrupt", who=agents) as mesh:
        if everybody:
            stopped = _interrupt_all(mesh, place.find_session(mesh).id)
        else:
            refs = list(find_agents(mesh, place, agents))
            stopped, refused = to_each(
                refs, lambda ref: [ref] if mesh.database.run(stop, ref.id, idempotent=True) else []
            )
    print_each("interrupted", stopped, refused, as_json=as_json)
    if not stopped and not as_json:
        say(f"{_labels(refs)} not running." if agents else "No agent was running.")


def _labels(refs: Sequence[Ref]) -> str:
    """Return ``coder (1234abcd) was``, or several names and ``were``."""
    return f"{listed([ref.label for ref in refs], _NAMED)} {'was' if len(refs) == 1 else 'were'}"


def _interrupt_all(mesh: Mesh, session: SessionId) -> list[Ref]:
    """Interrupt all agents of the session until they rest, and the waits of external ones; return those that ran."""
    from agentmesh.app.interrupting import interrupt_until_rest
    from agentmesh.store import agents

    run = mesh.database.run
    stopped = interrupt_until_rest(mesh.database, lambda: run(agents.view, session, idempotent=True))
    if stopped.running:
        names = ", ".join(one.name for one in stopped.running)
        complain(
            f"still stopping: {names}", "A tool does not end, or a worker is gone. agentmesh ps shows when they rest."
        )
    external = [
        Ref(one.id, one.name)
        for one in run(agents.view, session, idempotent=True)
        if one.external and one.status == AgentStatus.RUNNING
    ]
    return [*stopped.interrupted, *(ref for ref in external if run(agents.interrupt, ref.id, idempotent=True))]
