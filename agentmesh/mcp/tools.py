"""The tools of the MCP server: the verbs, and one to read conversations. Each parses, calls the store, and answers.

Names, schemas and descriptions are those that agents of the mesh see, except fork's description: the mesh does not have
its caller's conversation.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.rows import Ref
from agentmesh.engine import arguments
from agentmesh.engine.tool import Tool, ToolContext, ToolError
from agentmesh.mcp.member import Member
from agentmesh.mcp.transcript import ReadTranscript, ReadTranscriptArgs
from agentmesh.store import agents, mailbox
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database
from agentmesh.tools import toolset
from agentmesh.tools.fork import Fork, ForkArgs
from agentmesh.tools.kill import Kill, KillArgs
from agentmesh.tools.list_agents import ListAgents, ListAgentsArgs
from agentmesh.tools.send import Send, SendArgs
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

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Fork(_NO_DATABASE),
        Kill(_NO_DATABASE),
        ListAgents(_NO_DATABASE),
        ReadTranscript(_NO_DATABASE),
        Send(_NO_DATABASE),
        Wait(_NO_DATABASE),
    )
}
"""By name, in alphabetical order."""


def definitions() -> list[dict[str, Any]]:
    """Return name, description and parameters (a JSON schema) of each tool."""
    described = [entry["function"] for entry in toolset.definitions(TOOLS)]
    return [{**each, "description": _FORK} if each["name"] == "fork" else each for each in described]


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
    child = member.act(lambda lease: trees.fork(mesh, member.agent_id, args.name, args.prompt, own=own, lease=lease))
    made = run(agents.get, child, idempotent=True)
    return _noting(Ref(made.id, made.name).json(), member.ensure_served())


def _send(member: Member, args: SendArgs) -> dict[str, Any]:
    run, me, key = member.mesh.database.run, member.agent_id, uuid.uuid4().hex

    def deed(lease: Lease) -> dict[str, Any]:
        to = run(agents.resolve, member.session.id, args.to, me, idempotent=True)
        mail = run(mailbox.send, me, to.id, args.message, key, lease=lease, idempotent=True)
        return {"status": "sent", "to": to.json(), "message_id": mail}

    return _noting(member.act(deed), member.ensure_served())


def _kill(member: Member, args: KillArgs) -> dict[str, Any]:
    run, me = member.mesh.database.run, member.agent_id

    def deed(lease: Lease) -> list[Ref]:
        target = run(agents.resolve, member.session.id, args.agent_id, me, idempotent=True)
        return run(agents.kill, target.id, me, lease=lease)

    return {"killed": [ref.json() for ref in member.act(deed)]}


def _list_agents(member: Member, args: ListAgentsArgs) -> dict[str, Any]:
    return ListAgents(member.mesh.database).run(args, _context(member))


def _read_transcript(member: Member, args: ReadTranscriptArgs) -> dict[str, Any]:
    return ReadTranscript(member.mesh.database).run(args, _context(member))


_DEEDS: Mapping[str, Callable[[Member, Any], dict[str, Any]]] = {
    "fork": _fork,
    "kill": _kill,
    "list_agents": _list_agents,
    "read_transcript": _read_transcript,
    "send": _send,
}


def _context(member: Member, lease: Lease | None = None) -> ToolContext:
    session = member.session
    return ToolContext(member.agent_id, session.id, Path(session.workdir), Cancel(), lease=lease)


def _noting(result: dict[str, Any], note: str | None) -> dict[str, Any]:
    return {**result, "note": note} if note else result
