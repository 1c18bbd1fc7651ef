"""Words of a shell command as tree-sitter's grammar of bash sees them, with their quotes taken off."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Fail = Callable[[str], None]
"""Takes, in words, what was not understood."""
WORD_NODES = frozenset(
    {
        "word",
        "number",
        "string",
        "raw_string",
        "concatenation",
        "ansi_c_string",
        "translated_string",
        "brace_expression",
        "simple_expansion",
        "expansion",
        "arithmetic_expansion",
        "command_substitution",
        "process_substitution",
        "extglob_pattern",
        "regex",
    }
)
_BLANK = re.compile(rb"(?:[ \t\n]|\\\n)*")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_STRING_ESCAPE = re.compile(r"\\([\\\"$`])")
_SPECIAL = re.compile(r"(?<!\\)(?:\\\\)*([*?\[\]{}])")
_WRONG_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[<>|&;()\"'`$]")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command, its quotes taken off."""

    text: str
    known: bool = True
    """False when it holds an expansion: then ``text`` is its source."""
    glob: bool = False
    """It holds unquoted ``*``, ``?`` or brackets."""
    tilde: bool = False
    """It starts with an unquoted ``~``, or has one where bash may expand it."""


def read_word(node: Node, fail: Fail) -> Word:
    """Return a word without its quotes."""
    if node.type not in ("word", "number", "string", "raw_string", "concatenation"):
        return Word(source_of(node), known=False)
    if node.type == "concatenation":
        parts = [read_word(child, fail) for child in node.named_children]
        if not covered(node, blank=False) or len(parts) != len(node.children):
            fail("a part of it is not understood")
        text = "".join(part.text for part in parts)
        braces = text != "{}" and any(source_of(child) in ("{", "}") for child in node.named_children)
        known = all(part.known for part in parts) and not braces
        return Word(
            text,
            known=known,
            glob=any(part.glob for part in parts),
            tilde=parts[0].tilde,
        )
    source = source_of(node)
    if node.type == "raw_string":
        return Word(source[1:-1])
    if node.type == "string":
        return _string(node, source)
    if _WRONG_IN_WORD.search(source):
        fail(f"`{short_source(node)}` is not understood")
    return Word(
        _ESCAPE.sub(r"\1", source),
        glob=bool(_SPECIAL.search(source)) and source not in ("{", "}"),
        tilde=source.startswith("~") or "=~" in source or ":~" in source,
    )


def _string(node: Node, source: str) -> Word:
    if any(child.type != "string_content" for child in node.named_children):
        return Word(source[1:-1], known=False)
    return Word(_STRING_ESCAPE.sub(r"\1", source[1:-1]))


def covered(node: Node, *, blank: bool = True) -> bool:
    """Whether the children are all of a node's text, but for blanks: nothing was skipped."""
    text = node.text or b""
    place = node.start_byte
    for child in node.children:
        gap = text[place - node.start_byte : child.start_byte - node.start_byte]
        if gap and not (blank and _BLANK.fullmatch(gap)):
            return False
        place = child.end_byte
    gap = text[place - node.start_byte :]
    return bool(_BLANK.fullmatch(gap))


def source_of(node: Node | None) -> str:
    """Return a node's text."""
    return ((node.text if node else None) or b"").decode("utf-8", "replace")


def short_source(node: Node) -> str:
    """Return a node's text on one short line."""
    source = " ".join(source_of(node).split())
    return source if len(source) <= 40 else source[:39] + "…"
