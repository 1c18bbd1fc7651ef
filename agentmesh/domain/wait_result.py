"""A wait's result for people: each agent's status, and the mail that the wait took.

A model reads a wait's result as JSON. People see its messages like all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from agentmesh.domain.mail import answers
from agentmesh.domain.rows import Row, Taken
from agentmesh.domain.states import AgentStatus, Kind

_TEXTS = ("earlier_output", "message", "output", "error")
"""Fields of an entry that hold words of the agent, in the order in which they are shown."""

_RESULT = ("outcome", "results")
_ENTRY = (
    "agent_id",
    "name",
    "status",
    "message",
    "message_id",
    "reply_to",
    "output",
    "error",
    "hint",
    "more",
    "earlier_output",
)


def summary(result: Mapping[str, Any]) -> str:
    """Return how a wait ended and each agent's status: ``complete: coder received, tester idle, other failed``."""
    outcome = str(result.get("outcome") or "")
    found = [_found(entry) for entry in _entries(result) if not (_is_user(entry) or _is_process(entry))]
    ended = {"user": "ended by the user", "process": "ended by news of a process"}.get(outcome, outcome)
    return ": ".join(filter(None, [ended, ", ".join(found)]))


def taken(row: Row, reporters: Collection[UUID] = ()) -> tuple[Taken, ...]:
    """Return the mail that a wait took, if this row is the wait's result; nothing for other rows.

    ``reporters`` are its ``doubtful`` agents whose output was mail.
    """
    return tuple(mail for entry in _of_wait(row) for mail in _mail(entry, row, reporters))


def doubtful(row: Row) -> Sequence[UUID]:
    """Return the agents whose output was mail or only looked up: the row does not say which.

    An idle agent's output is in every wait for it, but only the first one takes its report.
    """
    if "copied" in row.content:  # its mail stayed in the other session
        return []
    found = (_id(entry) for entry in _of_wait(row) if _may_be_looked_up(entry))
    return [agent for agent in found if agent is not None]


def without_mail(result: Mapping[str, Any], mail: Collection[Taken]) -> dict[str, Any]:
    """Return a wait's result without the texts of its mail, for readers that see them as messages."""
    shown = {one.text for one in mail}

    def rest(entry: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in entry.items() if key not in _TEXTS or not shown.issuperset(_texts(value))}
        if "message" not in kept:
            kept.pop("reply_to", None)  # the message says it
        return kept

    return {**result, "results": [rest(entry) for entry in _entries(result)]}


def in_order(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a wait's result with its keys in the order of the contract, because jsonb keeps no order."""
    found = [dict(sorted(entry.items(), key=lambda item: _place(item[0], _ENTRY))) for entry in _entries(result)]
    whole = {**result, "results": found}
    return dict(sorted(whole.items(), key=lambda item: _place(item[0], _RESULT)))


def _place(key: str, order: Sequence[str]) -> int:
    return order.index(key) if key in order else len(order)


def _of_wait(row: Row) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a wait's result, if the row is one."""
    if row.kind == Kind.TOOL_RESULT and row.content.get("name") == "wait":
        yield from _entries(row.content.get("result"))


def _entries(result: Any) -> Iterator[Mapping[str, Any]]:
    found = result.get("results") if isinstance(result, Mapping) else None
    yield from (entry for entry in found if isinstance(entry, Mapping)) if isinstance(found, list) else ()


def _is_user(entry: Mapping[str, Any]) -> bool:
    return entry.get("name") == "user" and "agent_id" not in entry


def _is_process(entry: Mapping[str, Any]) -> bool:
    """Whether the entry is automatic mail about a process of the waiter's own."""
    return entry.get("name") == "process" and "agent_id" not in entry


def _found(entry: Mapping[str, Any]) -> str:
    name = entry.get("name") or entry.get("agent_id") or "?"
    status = entry.get("status") or ("unknown" if "error" in entry else "")
    if status == AgentStatus.IDLE and "error" in entry:
        status = "interrupted" if str(entry["error"]).startswith("interrupted") else "failed"
    more = f" (+{entry['more']})" if entry.get("more") else ""
    return f"{name} {status}".rstrip() + more


def _mail(entry: Mapping[str, Any], row: Row, reporters: Collection[UUID]) -> Iterator[Taken]:
    """Yield the messages of one entry, the oldest first."""
    name, sender = str(entry.get("name") or "?"), _id(entry)
    by_user = _is_user(entry)
    if _is_process(entry):
        for text in _texts(entry.get("message")):
            yield Taken(None, "process", text, automatic=False, failed=False)
        return
    if not by_user and "status" not in entry:  # an unknown sender
        return
    looked_up = _may_be_looked_up(entry) and "copied" not in row.content and sender not in reporters
    for field in _TEXTS:
        if looked_up and field in ("output", "error"):
            continue
        for text in reversed(_texts(entry.get(field))):
            yield Taken(
                sender,
                "user" if by_user else name,
                text,
                automatic=field != "message",
                failed=field == "error",
                answers=answers(entry) if field == "message" else "",
            )


def _texts(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    return [text for text in texts if isinstance(text, str) and text]


def _may_be_looked_up(entry: Mapping[str, Any]) -> bool:
    return entry.get("status") == "idle" and "message" not in entry and "earlier_output" not in entry


def _id(entry: Mapping[str, Any]) -> UUID | None:
    try:
        return UUID(str(entry.get("agent_id")))
    except ValueError:
        return None
