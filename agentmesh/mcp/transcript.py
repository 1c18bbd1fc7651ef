"""The read_transcript tool: the end of an agent's conversation, as plain text."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain import commands, images
from agentmesh.domain.ids import AgentId
from agentmesh.domain.jsontext import text_or_json
from agentmesh.domain.rows import Ref, Row
from agentmesh.domain.states import Kind
from agentmesh.domain.text import printable
from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import agents, transcript
from agentmesh.store.tx import Database

_ROWS = 1000
"""Rows that are looked at, from the end."""
_LONGEST = 200_000


class ReadTranscriptArgs(BaseModel):
    """Arguments of read_transcript."""

    agent_id: str = Field(description="Id or name of an agent of this session, alive or dead.")
    max_characters: int = Field(
        default=16_000, ge=100, le=_LONGEST, description="Return at most this much of the conversation's end."
    )


class ReadTranscript:
    """Read the end of an agent's conversation; the MCP server's own tool."""

    name = "read_transcript"
    effect = Effect.READ
    args = ReadTranscriptArgs
    description = (
        "Read the end of an agent's conversation as text: what it was told, said, and did. Changes nothing, and does "
        "not take its messages to you: those come by wait. Use it to see how an agent works, or what went wrong."
    )

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, args: ReadTranscriptArgs, context: ToolContext) -> dict[str, Any]:
        """Return the end of the agent's conversation."""
        me, run = context.agent_id, self._database.run
        agent = run(agents.resolve, context.session_id, args.agent_id, me, idempotent=True)
        return tail(self._database, agent.id, args.max_characters)


def tail(database: Database, agent: AgentId, limit: int) -> dict[str, Any]:
    """Return the agent's id, name and status, and the last ``limit`` characters of its own rows as text."""
    who = database.run(agents.get, agent, idempotent=True)
    last = database.run(transcript.last_seq, agent, idempotent=True)
    rows = database.run(transcript.own, agent, max(0, last - _ROWS), _ROWS, idempotent=True)
    text = "\n".join(line for row in rows if (line := _line(row)))
    result = {**Ref(who.id, who.name).json(), "status": str(who.status), "text": text[-limit:]}
    if len(text) > limit or last > _ROWS:
        result["note"] = "this is the end; earlier text is left out."
    return result


def _line(row: Row) -> str:
    """Return one row as text, "" if it has none."""
    content = row.content
    text = printable(images.with_labels(content.get("text") or content.get("error"), content))
    match row.kind:
        case Kind.ASSISTANT:
            calls = [f"→ {call.get('name')} {call.get('arguments')}" for call in content.get("calls") or []]
            return printable("\n".join(filter(None, [text and f"agent: {text}", *calls])))
        case Kind.TOOL_RESULT:
            return printable(f"← {content.get('name')} {text_or_json(content.get('result'))}")
        case Kind.MAIL:
            return f"mail from {content.get('name')}: {text}"
        case Kind.COMMAND:
            return printable(f"{commands.typed(content)}: {commands.outcome(content)}")
        case _:
            return f"{row.kind}: {text}" if text else ""
