"""Split an answer's text into words and pieces that may hold tool calls: tagged elements, fenced blocks, bare JSON.

Every look takes time in proportion to the text, whatever it is, and none raises: a model writes the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

_BEGIN = re.compile(
    r"<(?P<tag>tool_calls?|tools|function_call)>"
    r"|^(?P<before>[ \t]*)(?:(?P<fence>`{3,}|~{3,})(?P<word>[^\n`]*)(?:\n|\Z)|(?P<bare>(?=[{\[])))",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+(?P<close>"|\Z)|[{}\[\]]|(?P<stop></?(?:tool_calls?|tools|function_call)>|^[ \t]*(?:```|~~~))',
    re.DOTALL | re.MULTILINE,
)
"""Tokens that decide where a JSON value ends: whole strings, brackets, and the end of the piece around it."""
_ELEMENT = re.compile(r"\s*<(?P<tag>tool_calls?|tools|function_call)>")
_CALL = re.compile(r'[{\[\s]*+"(?:name|function)"')
_BETWEEN = re.compile(r"[\s,;]*+")
_BLANK = re.compile(r"\s*+")
_STRAY = re.compile(r"\s*+[}\]](?=\s*+(?:\Z|```|~~~|</))")
"""One closing bracket too many; it says nothing if nothing follows."""
_READ_FENCES = frozenset({"", "json", "jsonl", "json5", "tool_call", "tool_calls", "tool_code", "xml"})
_CODE_INDENT = 4
"""Markdown shows a paragraph that is indented this far as code."""
_MOST_BROKEN = 16
"""Broken pieces that are looked at: each look may read the rest of the text."""


class Kind(Enum):
    """How a piece is marked as a call."""

    TAG = "tag"
    FENCE = "fence"
    BARE = "bare"
    QUOTED = "quoted"
    """In a sentence, indented as code, or a block of another language: it is shown, not made."""


class CallPiece(NamedTuple):
    """A part of an answer that may hold calls."""

    kind: Kind
    values: tuple[str, ...]
    """Its JSON values, as texts with doubled braces made single."""
    is_whole: bool
    """Whether it holds nothing else."""
    start: int
    end: int


def split(text: str) -> Iterator[CallPiece]:
    """Yield the pieces of a text in their order; the text between them is words."""
    at = broken = 0
    while broken < _MOST_BROKEN and (begin := _BEGIN.search(text, at)):
        piece = _tagged(text, begin, at) if begin["tag"] else _fenced(text, begin) if begin["fence"] else None
        piece = piece or _bare(text, begin)
        broken += piece is None or not piece.is_whole
        if piece:
            yield piece
        at = max(piece.end if piece else begin.end(), begin.start() + 1)


def _tagged(text: str, begin: re.Match[str], free: int) -> CallPiece:
    """Return an element; one that lacks its end tag reaches to the end of its values."""
    values, end = _values(text, begin.end())
    kind, close = _kind_of_tag(text, begin, free), _end_tag(text, begin["tag"], end)
    if close < 0 and not (values and _may_end(text, end)):
        found = text.find(f"</{begin['tag']}>", end)
        return CallPiece(kind, values, False, begin.start(), max(end, found))
    return CallPiece(kind, values, bool(values), begin.start(), max(end, close))


def _end_tag(text: str, tag: str, at: int) -> int:
    """Return where the end tag that follows here ends; -1 if something else follows."""
    rest, tag = _after_blanks(text, at), f"</{tag}>"
    return rest + len(tag) if text.startswith(tag, rest) else -1


def _after_blanks(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _may_end(text: str, at: int) -> bool:
    """Whether an element without an end tag may end here: at the end of the text, or before another element."""
    rest = _after_blanks(text, at)
    return rest == len(text) or text.startswith(("<tool_call", "<tools", "<function_call"), rest)


def _kind_of_tag(text: str, begin: re.Match[str], free: int) -> Kind:
    """Return QUOTED if words stand before the tag on its line; another piece may."""
    line = text.rfind("\n", free, begin.start()) + 1
    return Kind.QUOTED if text[max(line, free) : begin.start()].strip() else Kind.TAG


def _fenced(text: str, begin: re.Match[str]) -> CallPiece:
    """Return a fenced block; a block of another language has no values, and one without an end reaches to the end."""
    fence = begin["fence"]
    close = re.compile(rf"^[ \t]*{fence}{fence[0]}*[ \t]*$", re.MULTILINE)
    values: tuple[str, ...] = ()
    end, kind = begin.end(), Kind.QUOTED
    if begin["word"].strip().lower() in _READ_FENCES:
        kind = Kind.FENCE
        values, end = _elements(text, end) if _ELEMENT.match(text, end) else _values(text, end)
    rest = _after_blanks(text, end)
    found = close.match(text, max(text.rfind("\n", 0, rest) + 1, begin.end()))
    is_whole = bool(values) and (found is not None or rest == len(text))
    found = found if is_whole else close.search(text, end)
    return CallPiece(kind, values, is_whole, begin.start(), found.end() if found else len(text))


def _elements(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the values of the elements that follow each other, and where they end; none if one is broken."""
    values: tuple[str, ...] = ()
    while begin := _ELEMENT.match(text, at):
        found, end = _values(text, begin.end())
        at = _end_tag(text, begin["tag"], end)
        if not found or at < 0:
            return (), end
        values += found
    return values, at


def _bare(text: str, begin: re.Match[str]) -> CallPiece | None:
    """Return the JSON values that begin a line; else a paragraph that begins like a call, without values; else None."""
    values, end = _values(text, begin.end())
    if not values:
        stop = text.find("\n\n", end)
        is_call = _CALL.match(text, end)
        return CallPiece(Kind.BARE, (), False, begin.start(), stop if stop >= 0 else len(text)) if is_call else None
    line = text.find("\n", end)
    beside = text[end : line if line >= 0 else len(text)]
    is_shown = len(begin["before"].expandtabs(_CODE_INDENT)) >= _CODE_INDENT
    kind = Kind.QUOTED if is_shown or beside.strip() else Kind.BARE
    return CallPiece(kind, values, True, begin.start(), end)


def _values(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the JSON objects and lists that follow each other, and where the last one ends."""
    values: list[str] = []
    end = at
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        found = _value(text, at) if text.startswith(("{", "["), at) else None
        if found is None:
            stray = _STRAY.match(text, end) if values else None
            return tuple(values), stray.end() if stray else end
        value, at = found
        values.append(value)
        end = at


def _value(text: str, start: int) -> tuple[str, int] | None:
    """Return the value that begins here and its end, None if it has none.

    Its last bracket may lack if nothing follows, and its last brace if another object does. ``{{`` is no JSON, but
    templates of models show calls with doubled braces: they become single ones.
    """
    parts: list[str] = []
    still_open: list[tuple[str, bool]] = []
    copied = skip = start
    stop, closed = len(text), 0
    for token in _TOKEN.finditer(text, start):
        bracket, at = token[0], token.start()
        if token["stop"] or (closed and _is_another_object(text, closed, at, still_open)):
            stop = at if token["stop"] else closed
            break
        if token["close"] == "":
            return None
        if at < skip or token["close"]:
            continue
        if bracket in "{[":
            is_double = text.startswith("{{", at)
            still_open.append((bracket, is_double))
        elif "{}[]".index(still_open[-1][0]) != "{}[]".index(bracket) - 1:
            return None
        else:
            is_double = still_open.pop()[1] and text.startswith("}}", at)
            closed = at + 1 + is_double
        if is_double:
            parts.append(text[copied:at])
            copied, skip = at + 1, at + 2
        if not still_open:
            end = at + 1 + is_double
            return "".join((*parts, text[copied:end])), end
    if len(still_open) != 1:
        return None
    return "".join((*parts, text[copied:stop].rstrip(), "}" if still_open[0][0] == "{" else "]")), stop


def _is_another_object(text: str, closed: int, at: int, still_open: list[tuple[str, bool]]) -> bool:
    """Whether an object begins where the only open one needs a key, so that the open one has ended."""
    between = _BETWEEN.match(text, closed)
    is_key_due = len(still_open) == 1 and still_open[0][0] == "{" and between is not None and between.end() >= at
    return is_key_due and text[at] == "{"
