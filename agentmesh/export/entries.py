"""Rows of a transcript for people: a head line, the text, and folded parts. Each format escapes their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agentmesh.domain import commands, images, jsontext, wait_result
from agentmesh.domain.mail import answers, notes
from agentmesh.domain.rows import Row, Taken
from agentmesh.domain.states import Kind
from agentmesh.domain.workspaces import own_tree
from agentmesh.export.cleaning import Cleaner, line, readable
from agentmesh.store.export import SessionSnapshot


@dataclass(frozen=True, slots=True)
class Fold:
    """A part that is shown on demand."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ExportedEntry:
    """One row, or a message in it."""

    seq: int
    at: datetime
    kind: str
    head: str
    """One line."""
    text: str = ""
    folds: tuple[Fold, ...] = ()
    failed: bool = False
    part: int = 0
    """Which entry of its row: a wait's result has one for each message that the wait took, from 1 on."""
    images: Sequence[Mapping[str, Any]] = ()
    """References to images of the row."""


def conversation(snap: SessionSnapshot, clean: Cleaner, agent: Mapping[str, Any]) -> Iterator[ExportedEntry]:
    """Yield the rows of an agent, cleaned; after the result of a wait, the messages that the wait took."""
    for row in snap.of_agent("transcript", agent["id"]):
        reporters = snap.reporters(Row(row["agent_id"], row["seq"], row["kind"], row["content"]))
        kept = clean.row(row)
        mail = wait_result.taken(Row(row["agent_id"], row["seq"], row["kind"], kept["content"]), reporters)
        shown = _entry(kept, str(row["kind"]), _parts_of(str(row["kind"]), kept["content"], agent["name"], mail))
        yield replace(shown, images=images.of_row(row["kind"], row["content"]))
        for part, one in enumerate(mail, 1):
            yield _entry(kept, "user" if one.by_user else "mail", _taken(one), part)


def _entry(row: Mapping[str, Any], kind: str, parts: _Parts, part: int = 0) -> ExportedEntry:
    head, text, folds, failed = parts
    return ExportedEntry(
        row["seq"],
        row["created_at"],
        kind,
        line(head),
        readable(text).strip("\n"),
        tuple(Fold(line(fold.title), readable(fold.text).strip("\n")) for fold in folds),
        failed,
        part,
    )


_Parts = tuple[str, str, list[Fold], bool]
"""Head, text, folds, whether it failed."""


def _parts_of(kind: str, content: Mapping[str, Any], name: str, mail: Sequence[Taken]) -> _Parts:
    match kind:
        case Kind.USER:
            return (
                _noted("agentmesh" if content.get("correction") else "user", answers(content)),
                images.with_labels(content.get("text"), content),
                [],
                False,
            )
        case Kind.MAIL:
            return _mail(
                str(content.get("name")), _words(content.get("text")), notes(content), bool(content.get("failed"))
            )
        case Kind.ASSISTANT:
            return _answer(content, name)
        case Kind.TOOL_RESULT:
            return _result(content, mail)
        case Kind.ERROR:
            said = [_words(content.get(key)) for key in ("error", "hint")]
            return "error", "\n".join(filter(None, said)), [], True
        case Kind.COMMAND:
            return commands.typed(content), "", _folded("result", commands.outcome(content)), False
        case Kind.SUMMARY:
            return "summary of what came before", "", _folded("summary", _words(content.get("text"))), False
        case Kind.EVENT:
            return _words(content.get("text") or content.get("event")), "", [], content.get("event") == "killed"
        case _:
            return kind, _words(content.get("text") or content.get("label")), [], False


def _answer(content: Mapping[str, Any], name: str) -> _Parts:
    folds = _folded("reasoning", _words(content.get("reasoning")))
    folds += [
        Fold(
            f"→ {call.get('name')}{_hint(str(call.get('name')), call.get('arguments'))}", _pretty(call.get("arguments"))
        )
        for call in content.get("calls") or []
    ]
    note = ", interrupted" if content.get("interrupted") else ""
    cut = f", ended by {content['finish_reason']}" if content.get("finish_reason") else ""
    return f"{name}{note}{cut}", _words(content.get("text")), folds, False


def _taken(mail: Taken) -> _Parts:
    """Return a message that a wait took, in the form of any other message."""
    if mail.by_user:
        return _noted("user", mail.notes), mail.text, [], False
    return _mail(mail.name, mail.text, mail.notes, mail.failed)


def _mail(name: str, text: str, note: str, failed: bool) -> _Parts:
    return _noted(f"mail from {name}", note), text, [], failed


def _noted(head: str, note: str) -> str:
    return f"{head}, {note}" if note else head


def _result(content: Mapping[str, Any], mail: Sequence[Taken]) -> _Parts:
    result = content.get("result")
    failed = isinstance(result, dict) and "error" in result
    title = f"← {content.get('name')}" + (": error" if failed else "")
    if mail:
        result = wait_result.without_mail(result or {}, mail)
    return "", "", [Fold(title, "\n".join(_fields(result)))], failed


def _fields(result: Any) -> Iterator[str]:
    """Yield a result's fields, each text with its own line breaks."""
    if not isinstance(result, dict):
        yield _words(result)
        return
    for key, value in result.items():
        text = _words(value)
        yield f"{key}:\n{text}" if "\n" in text else f"{key}: {text}"


def _folded(title: str, text: str) -> list[Fold]:
    return [Fold(title, text)] if text else []


def _words(value: Any) -> str:
    return "" if value is None else jsontext.text_or_json(value)


def _pretty(arguments: Any) -> str:
    """Return a call's arguments, one field per line if they are an object."""
    try:
        parsed = jsontext.parse(arguments)
    except (TypeError, ValueError):
        return _words(arguments)
    return "\n".join(_fields(parsed))


def _hint(tool: str, arguments: Any) -> str:
    """Return the beginning of a call's first argument, so that a folded call shows its subject, and an own tree."""
    try:
        parsed = jsontext.parse(arguments)
    except (TypeError, ValueError):
        return ""
    first = next(iter(parsed.values()), "") if isinstance(parsed, dict) else ""
    text = line(_words(first))
    subject = f" {text[:79]}…" if len(text) > 80 else f" {text}".rstrip()
    return f"{subject}{own_tree(tool, parsed)}"
