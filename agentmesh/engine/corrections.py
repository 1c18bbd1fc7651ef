"""Answers that only look like the end of a turn: an unread tool call, the tale of a call never made, or no word at all.

Such a model is told so once, by a row of its conversation that comes with its answer in one commit. It is then asked
again, under a constraint of its server if a call was meant. Whether it was told is read from the rows, so a crash in
between changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any, Final

from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.engine.messages import NO_ANSWER
from agentmesh.llm.bounds import MOST_CALLS
from agentmesh.llm.port import Reply, Unread

_MOST_SCHEMAS: Final = 3
"""Tools whose arguments a correction spells out."""
_FORM: Final = '{"name": "TOOL", "arguments": {...}}'
SHOWN: Final = "the answer shows a tool call that was not made"
TOLD: Final = "the answer tells of tool calls that were not made"


class Reason(StrEnum):
    """Why a model is corrected; the row says it."""

    CALL = "call"
    PERHAPS = "perhaps"
    TOLD = "told"
    EMPTY = "empty"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Correction:
    """A message to a model about its answer, before it is asked again."""

    reason: Reason
    text: str

    def content(self) -> dict[str, Any]:
        """Return it as the answer's row has it."""
        return {"reason": self.reason.value, "text": self.text}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on an answer without calls: correct it, fail the turn, or end the turn with a note of doubt."""

    correction: Correction | None = None
    error: Mapping[str, Any] | None = None
    ending: str | None = None


def judge(reply: Reply, rows: Sequence[Row], tools: Sequence[Mapping[str, Any]], *, is_small: bool = False) -> Verdict:
    """Return the verdict on an answer; ``rows`` are the conversation that it answers.

    ``is_small``: the agent has the tools of a small model, which forks children only for what they find.
    """
    if reply.tool_calls or reply.finish_reason not in ("stop", "tool_calls"):
        return Verdict()
    if is_small and _has_just_forked(rows, tools) and Reason.WAIT not in _made(rows):
        return Verdict(Correction(Reason.WAIT, _WAIT_WORDS))
    if reply.unread:
        return _of_call(reply, rows, tools)
    if _is_silent(reply, rows, tools):
        return Verdict() if Reason.EMPTY in _made(rows) else Verdict(Correction(Reason.EMPTY, _EMPTY_WORDS))
    told = _told_of(reply.text, rows, tools)
    if not told:
        return Verdict()
    if Reason.TOLD in _made(rows):
        return Verdict(ending=TOLD)
    return Verdict(Correction(Reason.TOLD, _TOLD_WORDS.format(tools=" or ".join(told))))


def says_nothing(text: str) -> bool:
    """Return whether a text has no word of the model's own."""
    return text.strip() in ("", NO_ANSWER)


def must_call(rows: Sequence[Row]) -> bool:
    """Return whether the next answer must be a tool call: the last one was meant as a call, or came too early."""
    return bool(rows) and rows[-1].content.get("correction") in (Reason.CALL, Reason.WAIT)


def asked(rows: Sequence[Row]) -> str:
    """Return the text of the newest message, if the model has made no call since."""
    for row in reversed(rows):
        if row.kind in (Kind.USER, Kind.MAIL) and not row.content.get("correction"):
            return str(row.content.get("text") or "")
        if row.kind is not Kind.USER and not (row.kind is Kind.ASSISTANT and not row.content.get("calls")):
            break
    return ""


def _of_call(reply: Reply, rows: Sequence[Row], tools: Sequence[Mapping[str, Any]]) -> Verdict:
    """Return the verdict on an answer that holds a call, or an example of one, that was not read."""
    if Reason.CALL in _made(rows, since=Kind.TOOL_RESULT):
        return Verdict(error={"error": _FAILED, "hint": _FAILED_HINT, "kind": "unread", "partial": reply.text})
    if reply.unread is Unread.PERHAPS:
        if Reason.PERHAPS in _made(rows):
            return Verdict(ending=SHOWN)
        return Verdict(Correction(Reason.PERHAPS, _PERHAPS_WORDS))
    words = _MANY_WORDS if reply.unread is Unread.MANY else f"{_CALL_WORDS} {_schemas(reply.text, tools)}"
    return Verdict(Correction(Reason.CALL, words))


def _has_just_forked(rows: Sequence[Row], tools: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether an answer follows a fork, so that it cannot know what the child finds, and wait is offered."""
    if not rows or rows[-1].kind is not Kind.TOOL_RESULT:
        return False
    newest = rows[-1].content
    has_forked = newest["name"] == "fork" and "error" not in newest["result"]
    return has_forked and any(tool["function"]["name"] == "wait" for tool in tools)


def _is_silent(reply: Reply, rows: Sequence[Row], tools: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether an answer has no word although tools have just been called, and no message went out.

    An agent that is to end with a call of ``report`` is asked for that instead, by the commit of its answer.
    """
    if not says_nothing(reply.text) or not rows or rows[-1].kind is not Kind.TOOL_RESULT:
        return False
    if any(tool["function"]["name"] == "report" for tool in tools):
        return False
    newest = takewhile(lambda row: row.kind is Kind.TOOL_RESULT, reversed(rows))
    return not any(row.content["name"] == "send" and "error" not in row.content["result"] for row in newest)


def _made(rows: Sequence[Row], since: Kind | None = None) -> set[str]:
    """Return the reasons of the corrections since the newest message, or since a newer row of the kind ``since``."""
    found: set[str] = set()
    for row in reversed(rows):
        reason = row.content.get("correction")
        if row.kind is Kind.USER and reason:
            found.add(str(reason))
        elif row.kind in (Kind.USER, Kind.MAIL, Kind.SUMMARY, since):
            break
    return found


def _schemas(text: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """Return the arguments of the tools that a text names; without any, the names of all tools."""
    by_name = {tool["function"]["name"]: tool["function"] for tool in tools}
    named = [
        name for name in dict.fromkeys(re.findall(r'"(?:name|function)"\s*:\s*"([^"]+)"', text)) if name in by_name
    ]
    if not named:
        return f"The tools are: {', '.join(by_name)}."
    return " ".join(
        f"The arguments of {name} have this JSON Schema: {json.dumps(by_name[name]['parameters'], ensure_ascii=False)}."
        for name in named[:_MOST_SCHEMAS]
    )


_ADVERBS: Final = r"(?: (?:now|just|already|successfully|also|then|first))*"
_DID: Final = rf"(?<!if )(?<!should )(?<!when )\bI(?:['’]ve| have)?{_ADVERBS}"
_WILL: Final = rf"\bI(?:['’]ll| will|['’]m going to| am going to){_ADVERBS}"
_NO_PROCESS: Final = r"\b(?! (?:process|thread|task|node|element))"
_CHILDREN: Final = rf"(?: [\w,'’-]+){{0,4}}? (?:child(?:ren)?|(?:sub-?)?agents?|forks?|siblings?){_NO_PROCESS}"
_MADE: Final = rf"(?: [\w-]+){{0,3}}? (?:child(?:ren)?|sub-?agents?){_NO_PROCESS}"
_MAIL: Final = (
    r"(?: [\w-]+){0,4}? (?:messages?|reports?|mails?)\b[^.\n]{0,20} to (?:(?:my|the|each|all|both|every|other) )*"
    r"(?:parent|child(?:ren)?|siblings?|root|agents?|others)\b"
)
_TALES: Final = tuple(
    (tools, re.compile("|".join(forms), re.IGNORECASE))
    for tools, forms in (
        (
            ("fork", "task"),
            (
                rf"{_DID} (?:forked|spawned){_CHILDREN}",
                rf"{_WILL} (?:fork|spawn){_CHILDREN}",
                rf"{_DID} (?:created|started|launched){_MADE}",
                rf"{_WILL} (?:create|start|launch){_MADE}",
            ),
        ),
        (("wait",), (rf"{_DID} waited for{_CHILDREN}", rf"{_WILL} wait for{_CHILDREN}")),
        (("send",), (rf"{_DID} sent{_MAIL}", rf"{_WILL} send{_MAIL}")),
    )
)
"""Tools, and how a model says that it has called or will call one of them."""


def _told_of(text: str, rows: Sequence[Row], tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tools that a text tells calls of, if none of them was called in the whole conversation."""
    if text.rstrip().endswith("?") or any(row.kind is Kind.SUMMARY for row in rows):
        return []
    offered = {tool["function"]["name"] for tool in tools}
    called = {call["name"] for row in rows if row.kind is Kind.ASSISTANT for call in row.content.get("calls") or ()}
    for names, tale in _TALES:
        can = [name for name in names if name in offered]
        if can and not called & set(names) and tale.search(text):
            return can
    return []


_FAILED: Final = "the model wrote a tool call that could not be read, twice in a row"
_FAILED_HINT: Final = (
    "Nothing of it was run. Try again, or choose a model or a server that makes tool calls; "
    "docs/reference/calls-in-text.md says what is read."
)
_CALL_WORDS: Final = (
    "Your last answer has a tool call in its text that could not be read, so nothing was run. Call the tool now. "
    f"If you can only write text, write nothing but one JSON object for each call: {_FORM}."
)
_MANY_WORDS: Final = (
    f"Your last answer has more than {MOST_CALLS} tool calls, so none was run. Make fewer calls in one answer."
)
_PERHAPS_WORDS: Final = (
    "Your last answer has or shows a tool call that was not run. If it was to be run, call the tool now; if you "
    f"can only write text, write nothing but one JSON object for each call: {_FORM}. If it is only shown, because you "
    "were asked for it, do not call the tool: give your answer again as it was."
)
_WAIT_WORDS: Final = (
    "You have not waited for the children that you forked, so you do not know yet what they found. Call wait now, with "
    "their ids in from_agents, and with no words before or after the JSON object."
)
"""Offers nothing else: a small model that may give its answer again does that."""
_EMPTY_WORDS: Final = "Your last answer was empty. Give your result now, in words, from what your tools have returned."
_TOLD_WORDS: Final = (
    "Your last answer says what you did or will do, but {tools} was never called in this conversation, so it has not "
    "happened. If it is to happen, call the tool now. If not, say what you really did."
)
