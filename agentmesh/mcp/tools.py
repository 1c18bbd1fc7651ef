"""The tools of the MCP server: the verbs, and tools that only look. Each parses, calls the store, and answers.

Names, schemas and descriptions are those that agents of the mesh see, except some words. The mesh does not have the
conversation of fork's caller. A client runs no commands, so its process is about those of the agents below it. It has
no tools ``merge``, ``task`` and ``todo_write``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import MailId
from agentmesh.domain.rows import Ref
from agentmesh.domain.shape import Shape
from agentmesh.engine import arguments
from agentmesh.engine.tool import Tool, ToolContext, ToolError
from agentmesh.mcp.member import Member
from agentmesh.mcp.transcript import ReadTranscript, ReadTranscriptArgs
from agentmesh.store import agents, forms, mailbox, timers, todos
from agentmesh.store.call import Lease
from agentmesh.store.send_many import audience_of, resolve_each, send_many
from agentmesh.store.tx import Database
from agentmesh.tools import tool_schema
from agentmesh.tools.fork import Fork, ForkArgs
from agentmesh.tools.interrupt import Interrupt, InterruptArgs
from agentmesh.tools.kill import Kill, KillArgs
from agentmesh.tools.list_agents import ListAgents, ListAgentsArgs
from agentmesh.tools.peek import Peek, PeekArgs
from agentmesh.tools.process import ProcessArgs, ReadProcess
from agentmesh.tools.send import Send, SendArgs, require_not_urgent, require_one_recipient, require_recipient, when_of
from agentmesh.tools.todo import Todo, TodoAction, TodoArgs, require_whole
from agentmesh.tools.wait import Wait, WaitArgs

_NO_DATABASE = cast(Database, None)
"""Describing tools and reading their arguments needs no database."""

_FORK = (
    "Start an agent of the mesh that works at the same time as you, on its own model. It sees only the prompt and the "
    "messages that agents have sent you here, nothing of your own conversation: say in the prompt exactly what to do, "
    'with every fact and path it needs, and what to send back. It reports with send to "parent", which is you. '
    "Fork several agents when their work is independent, then wait for all of them. An agent that has finished stays "
    "idle and keeps what it knows: give it more work with send, or end it with kill. With workspace own it works on a "
    "copy of the files; the user gets its changes by `agentmesh merge NAME`. Returns its agent_id and its final name."
)

_PROCESS = (
    "Reads or stops a command that an agent below you runs in the background, and returns {process_id, command, state, "
    "output, agent}, with exit_code if it has exited. state is running, exited, killed (stopped) or lost (the worker "
    "that ran it ended). Output is kept to 32 KiB: its beginning and its end. Without id it lists them. The agent that "
    "started one is told of its end."
)
_TODO = (
    "The work board of all agents of the session. claim takes an item (without id the oldest ready) for you alone, "
    "done ends it, release returns it."
)
_DESCRIPTIONS = {"fork": _FORK, "process": _PROCESS, "todo": _TODO}
_ARGUMENTS = {
    "fork": {
        "workspace": "own, a copy of the files for it alone, which the user merges",
        "type": "general-purpose, explore (reads only), plan, or another type of sub-agents that the user has",
    }
}
"""By tool, the words about arguments whose own words are about tools that a client has not."""

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Fork(_NO_DATABASE),
        Interrupt(_NO_DATABASE),
        Kill(_NO_DATABASE),
        ListAgents(_NO_DATABASE),
        Peek(_NO_DATABASE),
        ReadProcess(_NO_DATABASE, below=True),
        ReadTranscript(_NO_DATABASE),
        Send(_NO_DATABASE),
        Todo(_NO_DATABASE),
        Wait(_NO_DATABASE),
    )
}
"""By name, in alphabetical order."""


def definitions() -> list[dict[str, Any]]:
    """Return name, description and parameters (a JSON schema) of each tool."""
    described = [tool_schema.full(tool)["function"] for tool in TOOLS.values()]
    for each in described:
        each["description"] = _DESCRIPTIONS.get(each["name"], each["description"])
        for argument, words in _ARGUMENTS.get(each["name"], {}).items():
            each["parameters"]["properties"][argument]["description"] = words
    return described


def read(name: str, given: Mapping[str, Any]) -> tuple[Any, str | None]:
    """Return a call's arguments and a note on ignored ones; raise ToolError with a message that a model can act on."""
    tool = TOOLS.get(name)
    if tool is None:
        raise ToolError(f"there is no tool {name[:40]!r}", f"The tools are {', '.join(TOOLS)}.")
    return arguments.read(tool, json.dumps(given))


def call(member: Member, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run any tool except wait, and return its result."""
    args, note = read(name, given)
    member.join()
    result = _DEEDS[name](member, args)
    return {**result, "note": " ".join(filter(None, [result.get("note"), note]))} if note else result


def begin_wait(member: Member, args: WaitArgs) -> dict[str, Any] | None:
    """Begin a wait; return its result if it is over at once."""
    return member.act(lambda lease: Wait(member.mesh.database).run(args, _context(member, lease)))


def refusal(error: ToolError | AgentmeshError) -> dict[str, Any]:
    """Return an error in the form of a tool's result."""
    extra = error.extra if isinstance(error, ToolError) else {}
    return {"error": str(error), **({"hint": error.hint} if error.hint else {}), **extra}


def _fork(member: Member, args: ForkArgs) -> dict[str, Any]:
    from agentmesh.app import trees

    run, mesh, own = member.mesh.database.run, member.mesh, None if args.workspace is None else args.workspace == "own"
    approved = _may_check(member, args.check)
    shape = Shape(args.model, args.tools, args.context, args.form, args.check, check_approved=approved, type=args.type)
    shape = shape._replace(effort=args.effort)
    child = member.act(
        lambda lease: trees.fork(mesh, member.agent_id, args.name, args.prompt, own=own, lease=lease, shape=shape)
    )
    made = run(agents.get, child, idempotent=True)
    cache = run(agents.fork_cache, child, idempotent=True)
    return _noting({**Ref(made.id, made.name).json(), **({"cache": cache} if cache else {})}, member.ensure_served())


def _may_check(member: Member, check: str | None) -> bool:
    """Return whether a check may do more than read; raise ToolError if a person would have to allow it first."""
    if check is None:
        return False
    from agentmesh.domain.permissions import Decision, refusal
    from agentmesh.engine.tool import Rights
    from agentmesh.tools.gate import ToolGate

    rules, allowance = member.mesh.database.run(forms.rights, member.agent_id, idempotent=True)
    gate = ToolGate(walls=member.mesh.walls)
    verdict = gate.judge("bash", {"command": check}, Rights(rules, allowance), Path(member.session.workdir))
    if verdict.decision is not Decision.ALLOW:
        said = refusal(verdict, "the check")
        raise ToolError(said.message, said.hint)
    return verdict.approved


def _send(member: Member, args: SendArgs) -> dict[str, Any]:
    run, me, key = member.mesh.database.run, member.agent_id, uuid.uuid4().hex
    when = when_of(args)
    require_recipient(args, when)

    def deed(lease: Lease) -> dict[str, Any]:
        if when.is_later:
            require_not_urgent(args)
            to = run(agents.resolve, member.session.id, require_one_recipient(args), me, idempotent=True)
            timer = run(timers.send_later, me, to.id, args.message, when, lease)
            due = run(timers.due_at, timer, idempotent=True)
            cron = {} if when.cron is None else {"cron": when.cron}
            return {"status": "scheduled", "to": to.json(), "timer_id": timer, "due_at": due.isoformat(), **cron}
        audience = audience_of(args.to) if isinstance(args.to, str) else None
        if audience or isinstance(args.to, list):
            whom = audience or run(resolve_each, member.session.id, list(args.to or ()), me, idempotent=True)
            sent = run(send_many, me, whom, args.message, key, lease, urgent=args.urgent, idempotent=True)
            return {"status": "sent", "sent": [one.json() for one in sent]}
        return _send_to_one(member, args, key, lease)

    return _noting(member.act(deed), member.ensure_served())


def _send_to_one(member: Member, args: SendArgs, key: str, lease: Lease) -> dict[str, Any]:
    run, me = member.mesh.database.run, member.agent_id
    answered = None if args.reply_to is None else MailId(args.reply_to)
    if isinstance(args.to, str):
        to = run(agents.resolve, member.session.id, args.to, me, idempotent=True)
    elif answered is not None:
        to = run(mailbox.addressee, me, answered, idempotent=True)
    else:
        raise AssertionError("require_recipient has refused it")
    how = {"lease": lease, "urgent": args.urgent, "reply_to": answered}
    mail = run(mailbox.send, me, to.id, args.message, key, idempotent=True, **how)
    return {"status": "sent", "to": to.json(), "message_id": mail}


def _interrupt(member: Member, args: InterruptArgs) -> dict[str, Any]:
    run, me = member.mesh.database.run, member.agent_id

    def deed(lease: Lease) -> dict[str, Any]:
        target = run(agents.resolve, member.session.id, args.agent_id, me, idempotent=True)
        return {**target.json(), "interrupted": run(agents.interrupt, target.id, me, lease=lease)}

    return member.act(deed)


def _kill(member: Member, args: KillArgs) -> dict[str, Any]:
    run, me = member.mesh.database.run, member.agent_id

    def deed(lease: Lease) -> list[Ref]:
        target = run(agents.resolve, member.session.id, args.agent_id, me, idempotent=True)
        return run(agents.kill, target.id, me, lease=lease)

    return {"killed": [ref.json() for ref in member.act(deed)]}


def _list_agents(member: Member, args: ListAgentsArgs) -> dict[str, Any]:
    return ListAgents(member.mesh.database).run(args, _context(member))


def _peek(member: Member, args: PeekArgs) -> dict[str, Any]:
    return Peek(member.mesh.database).run(args, _context(member))


def _process(member: Member, args: ProcessArgs) -> dict[str, Any]:
    return dict(ReadProcess(member.mesh.database, below=True).run(args, _context(member)))


def _todo(member: Member, args: TodoArgs) -> dict[str, Any]:
    run, session, me = member.mesh.database.run, member.session.id, member.agent_id
    require_whole(args)

    def deed(lease: Lease) -> dict[str, Any]:
        match args.action:
            case TodoAction.ADD:
                added = run(todos.add_todo, session, me, args.content or "", args.after or (), lease)
                return {"added": run(todos.shown, added, idempotent=True)}
            case TodoAction.CLAIM:
                claimed = run(todos.claim_todo, session, me, args.id, lease)
                return {"claimed": claimed and run(todos.shown, claimed, idempotent=True)}
            case TodoAction.DONE:
                run(todos.finish_todo, session, me, args.id or 0, args.note, lease, idempotent=True)
                return dict(run(todos.shown_done, session, args.id or 0, idempotent=True))
            case TodoAction.RELEASE:
                run(todos.release_todo, session, me, args.id or 0, lease, idempotent=True)
                return {"released": run(todos.shown, args.id or 0, idempotent=True)}
            case TodoAction.LIST:
                return dict(run(todos.shown_board, session, idempotent=True))

    return member.act(deed)


def _read_transcript(member: Member, args: ReadTranscriptArgs) -> dict[str, Any]:
    return ReadTranscript(member.mesh.database).run(args, _context(member))


_DEEDS: Mapping[str, Callable[[Member, Any], dict[str, Any]]] = {
    "fork": _fork,
    "interrupt": _interrupt,
    "kill": _kill,
    "list_agents": _list_agents,
    "peek": _peek,
    "process": _process,
    "read_transcript": _read_transcript,
    "send": _send,
    "todo": _todo,
}


def _context(member: Member, lease: Lease | None = None) -> ToolContext:
    session = member.session
    return ToolContext(member.agent_id, session.id, Path(session.workdir), Cancel(), lease=lease)


def _noting(result: dict[str, Any], note: str | None) -> dict[str, Any]:
    return {**result, "note": note} if note else result
