"""A conversation as entries: what the screen shows of each row. Widgets decide how."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentmesh.domain import commands, images, mail
from agentmesh.domain.figures import plural
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.domain.text import one_line, printable
from agentmesh.tui.session.rows import call_key, row_of


class ChatMessage(NamedTuple):
    """A message of a person or of another agent."""

    key: str
    who: str
    text: str
    by_user: bool
    note: str = ""
    """A remark for its head line."""


class ModelMessage(NamedTuple):
    """The text and the reasoning that the agent's model wrote in one step."""

    key: str
    text: str
    reasoning: str = ""
    interrupted: bool = False


class ToolCall(NamedTuple):
    """A tool call. Its result is another object, because it comes later."""

    key: str
    name: str
    arguments: str
    """As the model wrote them: usually a JSON object."""
    since: float | None = None
    """``time.monotonic()`` at the beginning of its step, if known."""


class ToolResult(NamedTuple):
    """The result of the call with the same key."""

    key: str
    name: str
    result: Any
    seconds: float | None = None
    """How long it took, if known."""


class Note(NamedTuple):
    """Something that no model sees: an event, a command, an error, a capture, a mark."""

    key: str
    kind: Kind
    text: str
    hint: str = ""
    gone: range | None = None
    """Seqs of rows that the model is no longer sent from here on; 0 stands for inherited rows."""


class Summary(NamedTuple):
    """A summary that the model is sent instead of earlier rows."""

    key: str
    head: str
    text: str


class Inherited(NamedTuple):
    """The history that a fork took over, folded."""

    key: str
    source: str
    total: int
    """The number of all inherited rows; ``rows`` has the newest."""
    rows: tuple[Row, ...]


TASK = "task"
"""The tool that hands a task to a sub-agent; its calls show the progress."""

OPEN_LINES = 40
"""Most lines of a change that is shown unfolded."""
_CHANGES = ("edit", "write")

Entry = ChatMessage | ModelMessage | ToolCall | Note | Summary | Inherited


def entries_of(row: Row) -> Iterator[Entry | ToolResult]:
    """Yield the entries of one row; no text has control characters."""
    content, key = row.content, str(row.seq)
    match Kind(row.kind):
        case Kind.USER | Kind.MAIL:
            yield _chat_message(row)
        case Kind.ASSISTANT:
            yield from _model_step(row)
        case Kind.TOOL_RESULT:
            of = call_key(content.get("seq", 0), content.get("ordinal", 0))
            yield ToolResult(of, one_line(str(content.get("name", "?")), 60), content.get("result"), row.seconds)
            yield from _mail_taken_by_wait(row)
        case Kind.ERROR:
            if partial := _text(content, "partial"):
                yield ModelMessage(f"{key}.partial", partial, interrupted=True)
            yield Note(key, Kind.ERROR, _text(content, "error") or "it failed", _text(content, "hint"))
        case Kind.COMMAND:
            yield Note(key, Kind.COMMAND, *_command(content))
        case Kind.SUMMARY:
            yield Summary(key, _compacted(content), _text(content, "text"))
        case Kind.EVENT | Kind.CAPTURE | Kind.MARK as kind:
            said = _text(content, "text") or _text(content, "label") or _text(content, "event")
            yield Note(key, kind, said, gone=range(content.get("keep", -1) + 1, row.seq) if row.resets else None)


def _model_step(row: Row) -> Iterator[Entry]:
    """Yield what the model wrote in one step: its text, then its calls."""
    content = row.content
    text, reasoning = _text(content, "text"), _text(content, "reasoning")
    interrupted = bool(content.get("interrupted"))
    if text or reasoning or interrupted:
        yield ModelMessage(str(row.seq), text, reasoning, interrupted)
    since = None if row.seconds is None else time.monotonic() - row.seconds
    for ordinal, call in enumerate(content.get("calls") or []):
        name, arguments = one_line(str(call.get("name", "?")), 60), printable(str(call.get("arguments") or ""))
        yield ToolCall(call_key(row.seq, ordinal), name, arguments, since)


def fork_row(entry: Entry) -> int | None:
    """Return the last row that a fork from here inherits; None if the entry shows no row.

    A fork from a message begins before it, any other fork after the entry. The database moves a row in the middle of a
    step to before that step.
    """
    row = row_of(entry.key)
    return row - 1 if row is not None and isinstance(entry, ChatMessage) else row


def words(entry: Entry, result: ToolResult | None) -> str:
    """Return the text to copy of an entry; for a call its arguments and its result."""
    match entry:
        case ChatMessage() | ModelMessage() | Summary():
            return entry.text
        case Note():
            return f"{entry.text}\n{entry.hint}".strip()
        case ToolCall():
            said = (
                printable(result.result if isinstance(result.result, str) else _fields(result.result)) if result else ""
            )
            return f"{entry.name} {entry.arguments}\n{said}".strip()
        case Inherited():
            return ""


def height(entry: Entry, width: int) -> int:
    """Estimate how many lines a folded entry takes, to decide how many to mount."""
    match entry:
        case ToolCall():
            if entry.name in _CHANGES:
                lines = entry.arguments.count("\\n") + 1
                return 1 + (lines if lines <= OPEN_LINES else 0)
            return 2 if entry.name == TASK else 1
        case Inherited():
            return 2
        case Summary():
            return 3
        case ChatMessage():
            return 2 + min(_wrapped(entry.text, width), _FOLDED)
        case ModelMessage() | Note():
            return 1 + _wrapped(entry.text, width)


_FOLDED = 48


def _wrapped(text: str, width: int) -> int:
    return sum(1 + len(line) // max(width, 20) for line in text.split("\n"))


def _chat_message(row: Row) -> ChatMessage:
    content = row.content
    is_correction = bool(content.get("correction"))
    by_user = row.kind == Kind.USER and not is_correction
    notes = ["about its last answer"] if is_correction else []
    if content.get("introduces"):
        notes.append("the prompt of this fork")
    if remarks := mail.notes(content):
        notes.append(remarks)
    who = "you" if by_user else "agentmesh" if is_correction else one_line(str(content.get("name") or "an agent"), 40)
    text = "\n".join(filter(None, [_text(content, "text"), images.labels(content)]))
    return ChatMessage(str(row.seq), who, text, by_user, ", ".join(notes))


def _mail_taken_by_wait(row: Row) -> Iterator[ChatMessage]:
    """Yield the messages that a wait took."""
    for number, one in enumerate(row.mail):
        who = "you" if one.by_user else one_line(one.name, 40)
        yield ChatMessage(f"{row.seq}.mail{number}", who, printable(one.text).strip("\n"), one.by_user, one.notes)


def _compacted(content: Mapping[str, Any]) -> str:
    """Return the outcome of a summary in a line."""
    before, after = (content.get(f"tokens_{when}") for when in ("before", "after"))
    figures = f" from about {before:,} to {after:,} tokens" if before and after else ""
    kept = content.get("kept") or 0
    rest = f", but the last {plural(kept, 'message')}" if kept else ""
    return f"compacted{figures}: the model is sent a summary of what is above{rest}"


def _command(content: Mapping[str, Any]) -> tuple[str, str]:
    """Return a person's command and its outcome."""
    said = printable(commands.outcome(content))
    return one_line(commands.typed(content), 200), one_line(said, 500) if content.get("command") == "wait" else said


def _fields(result: Any) -> str:
    if not isinstance(result, Mapping):
        return str(result)
    return "\n".join(f"{name}: {value}" for name, value in result.items())


def _text(content: Mapping[str, Any], name: str) -> str:
    return printable(str(content.get(name) or "")).strip("\n")
