"""The events of a run as JSON objects with a ``type``; docs/reference/cli.md lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.domain.rows import AgentView, Row
from agentmesh.domain.states import Kind

Event = dict[str, Any]


def forked(agent: AgentView, below: str | None) -> Event:
    """Return the event for a new agent; ``below``: the id of the task call that it works for."""
    return {"type": "forked", **_who(agent, below)}


def status(agent: AgentView, below: str | None) -> Event:
    """Return the event for a change of status; ``below`` as in ``forked``."""
    return {"type": "status", **_who(agent, below), "status": agent.status}


def of_row(agent: AgentView, row: Row, below: str | None = None) -> Iterator[Event]:
    """Yield the events in a row of the agent's transcript, in order; ``below`` as in ``forked``."""
    content, who = row.content, {**_who(agent, below), "seq": row.seq}
    match row.kind:
        case Kind.USER:
            shown = {key: content[key] for key in ("images", "reply_to") if content.get(key)}
            sender = "agentmesh" if content.get("correction") else "user"
            yield {"type": "mail", **who, "from": sender, "from_id": None, "text": content.get("text", ""), **shown}
        case Kind.MAIL:
            by = {"from": content.get("name"), "from_id": content.get("sender")}
            more = {key: content[key] for key in ("about", "reply_to") if content.get(key)}
            automatic = bool(content.get("automatic"))
            yield {"type": "mail", **who, **by, "text": content.get("text", ""), "automatic": automatic, **more}
        case Kind.ASSISTANT:
            yield from _answer(content, who)
        case Kind.TOOL_RESULT:
            yield {
                "type": "tool_result",
                **who,
                "call_id": content.get("call_id"),
                "tool": content.get("name"),
                "result": content.get("result"),
            }
        case Kind.ERROR:
            yield {"type": "error", **who, **{key: value for key, value in content.items() if key not in who}}
        case _:
            yield {"type": str(row.kind), **who, **{key: value for key, value in content.items() if key not in who}}


def _answer(content: Any, who: Event) -> Iterator[Event]:
    if content.get("text") or content.get("reasoning") or not content.get("calls"):
        message = {"type": "message", **who, "text": content.get("text") or ""}
        message |= {"reasoning": content["reasoning"]} if content.get("reasoning") else {}
        message |= {"interrupted": True} if content.get("interrupted") else {}
        message |= {"finish_reason": content["finish_reason"]} if content.get("finish_reason") else {}
        yield message
    for call in content.get("calls") or []:
        yield {
            "type": "tool_call",
            **who,
            "call_id": call.get("id"),
            "tool": call.get("name"),
            "arguments": _arguments(call.get("arguments")),
        }


def _arguments(text: Any) -> Any:
    """Return a call's arguments as an object if they are one, otherwise as the model's text."""
    try:
        parsed = jsontext.parse(text)
    except (TypeError, ValueError):
        return text
    return parsed if isinstance(parsed, dict) else text


def _who(agent: AgentView, below: str | None) -> Event:
    who = {"agent_id": agent.id, "name": agent.name, "parent_id": agent.parent_id}
    return who if below is None else {**who, "parent_call_id": below}
