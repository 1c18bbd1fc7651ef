"""Split a conversation into a part to sum up and a part to keep; write the stand-in if no model writes a summary.

Nothing here asks a model or the database: ``summary_call`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentmesh.domain import images
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.domain.text import clip, one_line
from agentmesh.engine.conversation import BYTES_PER_TOKEN, Conversation

ASK = (
    "[This is not from the user.] The context is nearly full, so the conversation above will be replaced by a summary "
    "that you write now. You will go on from it alone, so write down whatever the work needs: the goals and what "
    "exactly was asked for; what was done and found, and the state that it is in; decisions and their reasons; what is "
    "left to do, step by step; files with their paths; other agents with their names and full ids, what each of them "
    "does and what you or they promised to whom; facts, numbers and words that must not change. Write at most {words} "
    "words, as text alone. Call no tool."
)
"""Comes after the messages that it is about. Nothing before it changes, so the provider has them cached."""

_TAIL = 4
"""The newest rows stay as they are if they take up at most one part in this many of the room, unless a person asked."""
_NEWEST = 2
"""The newest step stays as it is if it takes up at most one part in this many of the room."""
_WORDS = (150, 1500)
_LEAST_GAIN = 10
"""At least one part in this many of the conversation must be left out; otherwise each step would make a summary."""
_MOST_LEFT = 12_000
"""Bytes of the text that stands in if no model made a summary."""
_TASK, _LINE = 3000, 600
"""The bytes among these for the first task (and for an earlier summary), and for each newer row."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A cut through a conversation; a tool's call and its result are always on the same side."""

    covered: Sequence[Row]
    """The rows that the summary stands for."""
    kept: Sequence[Row]
    """The rows that stay as they are, after the summary."""
    summed: int
    """How many covered rows the model is asked about; not the newest step if it is too long to be sent."""
    upto: int
    """The newest own row that is covered; 0 if only inherited ones are."""
    covered_bytes: int
    words: int
    """Length of the summary that is asked for."""
    goes_on: bool
    """Whether the last covered row wants an answer."""


def plan(conversation: Conversation, room: int, *, thorough: bool) -> CompactionPlan | None:
    """Return where to cut so that clearly less than ``room`` tokens are sent; None if that gains too little.

    ``thorough``: a person asked for it, so keep only the rows that have no answer yet.
    """
    rows, sizes = conversation.rows, conversation.sizes[1:]
    free = max(room * BYTES_PER_TOKEN - conversation.sizes[0], 0)
    if not rows:
        return None
    newest = _newest_step(rows)
    wants_answer = conversation.wants_answer and rows[-1].agent_id == conversation.agent_id
    is_too_long = wants_answer and sum(sizes[newest:]) > free // _NEWEST
    cut = len(rows)
    if not thorough:
        cut = _tail(conversation, free // _TAIL)
    if wants_answer and not is_too_long and _may_begin(rows[newest], conversation):
        cut = min(cut, newest)
    covered_bytes = sum(sizes[:cut])
    is_summary_only = all(row.kind == Kind.SUMMARY for row in rows[:cut])
    if is_summary_only or (not thorough and covered_bytes < sum(sizes) // _LEAST_GAIN):
        return None
    return CompactionPlan(
        covered=rows[:cut],
        kept=rows[cut:],
        # A step that is too long to keep may be too long to send: ask the model only about rows that were sent before.
        summed=newest if cut == len(rows) and is_too_long else cut,
        upto=rows[cut].seq - 1 if cut < len(rows) else conversation.last_seq,
        covered_bytes=covered_bytes,
        words=min(max(free // 40, _WORDS[0]), _WORDS[1]),
        goes_on=wants_answer and cut == len(rows),
    )


def _tail(conversation: Conversation, room: int) -> int:
    """Return where the longest tail begins that takes at most ``room`` bytes."""
    rows, sizes = conversation.rows, conversation.sizes[1:]
    cut = index = len(rows)
    while index > 0 and room >= sizes[index - 1] and rows[index - 1].agent_id == conversation.agent_id:
        index -= 1
        room -= sizes[index]
        if _may_begin(rows[index], conversation):
            cut = index
    return cut


def _may_begin(row: Row, conversation: Conversation) -> bool:
    """Whether the kept part may begin with this row: an own row that is no result, since its call would be missing."""
    return row.agent_id == conversation.agent_id and row.kind not in (Kind.TOOL_RESULT, Kind.SUMMARY)


def _newest_step(rows: Sequence[Row]) -> int:
    """Return where the newest step begins: with words that are not answered yet, or with calls and their results."""
    index = len(rows) - 1
    if rows[index].kind == Kind.TOOL_RESULT:
        while index > 0 and rows[index].kind == Kind.TOOL_RESULT:
            index -= 1
        return index
    while index > 0 and rows[index].kind in (Kind.USER, Kind.MAIL) and rows[index - 1].kind in (Kind.USER, Kind.MAIL):
        index -= 1
    return index


def ask(made: CompactionPlan) -> dict[str, Any]:
    """Return the message that asks for the summary."""
    return {"role": "user", "content": ASK.format(words=made.words)}


def content(made: CompactionPlan, text: str, conversation: Conversation, *, auto: bool) -> dict[str, Any]:
    """Return the summary's row."""
    before = sum(conversation.sizes)
    after = before - made.covered_bytes + len(text.encode("utf-8", "replace"))
    row: dict[str, Any] = {
        "text": text,
        "upto": made.upto,
        "auto": auto,
        "rows": len(made.covered),
        "kept": len(made.kept),
        "tokens_before": conversation.tokens,
        "tokens_after": conversation.tokens * after // max(before, 1),
    }
    if made.goes_on:
        row["goes_on"] = True
    if not any(introduces(row, conversation) for row in made.kept):
        told = [who for row in made.covered if (who := introduces(row, conversation))]
        row |= {"introduces": told[-1]} if told else {}
    return row


def introduces(row: Row, conversation: Conversation) -> Mapping[str, Any] | None:
    """Return the part of a row that tells the agent about itself."""
    return row.content.get("introduces") if row.agent_id == conversation.agent_id else None


def newest_step(made: CompactionPlan) -> str:
    """Return the kept part of a newest step that is too long to stay; empty if it stays or is in the request."""
    rows = made.covered[made.summed :]
    if not rows:
        return ""
    room = min(made.covered_bytes // 4, _MOST_LEFT)
    left = "\n\n".join(clip(_line(row), max(room // len(rows), 200)) for row in rows)
    return f"The newest step was too long to be kept; this is left of it:\n\n{left}"


def left_over(made: CompactionPlan, why: str) -> str:
    """Return the stand-in for the covered rows if no model made a summary: the first task and the newest rows."""
    room = _room(made)
    parts = [f"(No model made this summary: {one_line(why, 200)} The oldest messages were left out.)"]
    first = _first(made)
    parts += [beginning(made)] if first else []
    newer: list[str] = []
    left = room - sum(len(part.encode()) for part in parts)
    for row in reversed(made.covered[: made.summed]):
        line = clip(_line(row), _LINE)
        left -= len(line.encode("utf-8", "replace")) + 1
        if row is first or left < 0:
            break
        newer.append(line)
    if newer:
        parts.append("The newest of what was left out:\n" + "\n".join(reversed(newer)))
    return "\n\n".join(parts)


def beginning(made: CompactionPlan) -> str:
    """Return what a stand-in says first: the first task, or the last summary that a model made.

    Its row keeps this as ``began``, for the next stand-in: one inside another would leave ever less of the task.
    """
    first = _first(made)
    if first is None:
        return ""
    text = str(first.content.get("text", ""))
    if first.kind == Kind.SUMMARY:
        text = str(first.content.get("began") or f"The summary before this one:\n{text}")
    else:
        text = f"It began with:\n{text}"
    return clip(text, min(_TASK, _room(made) // 2))


def _first(made: CompactionPlan) -> Row | None:
    """Return the first covered row that says what the work is."""
    return next((row for row in made.covered if row.kind in (Kind.SUMMARY, Kind.USER, Kind.MAIL)), None)


def _room(made: CompactionPlan) -> int:
    """Return how many bytes a stand-in may have."""
    return min(made.covered_bytes // 3, _MOST_LEFT)


def _line(row: Row) -> str:
    """Return a row as one paragraph."""
    said = row.content
    match row.kind:
        case Kind.TOOL_RESULT:
            return f"result of {said.get('name')}: {json.dumps(said.get('result'), ensure_ascii=False)}"
        case Kind.ASSISTANT:
            calls = "".join(f" [called {call['name']} {call['arguments']}]" for call in said.get("calls") or [])
            return f"you: {said.get('text') or ''}{calls}"
        case Kind.MAIL:
            return f"mail from {said.get('name')} (id {said.get('sender')}): {said.get('text')}"
        case Kind.SUMMARY:
            return f"summary: {said.get('text')}"
        case _:
            return f"user: {images.with_labels(said.get('text'), said)}"
