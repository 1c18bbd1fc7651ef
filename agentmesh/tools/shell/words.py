"""Words of a shell command as tree-sitter's grammar of bash sees them, without their quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Fail = Callable[[str], None]
"""Takes a description of the part that was not understood."""
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
_EXPANSION = re.compile(r"[$`]|[<>]\(|\{")
_BLANK = re.compile(rb"[ \t\n]*")
_PLAIN = r"[\w./,*?@%+={}:-]*"
_BRACED = re.compile(_PLAIN + r"\{(?:[\w./*?@%+=-]*(?:,[\w./*?@%+=-]*)+|-?\d+\.\.-?\d+|[a-z]\.\.[a-z])\}" + _PLAIN)
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAX_BRACED = 200
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_STRING_ESCAPE = re.compile(r"\\([\\\"$`])")
_SPECIAL = re.compile(r"(?<!\\)(?:\\\\)*([*?\[\]{}])")
_WRONG_IN_WORD = re.compile(r"(?<!\\)(?:\\\\)*[<>|&;()\"'`$]")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command, without its quotes."""

    text: str
    known: bool = True
    """False if it holds an expansion: then ``text`` is its source."""
    glob: bool = False
    """It holds unquoted ``*``, ``?`` or brackets."""
    tilde: bool = False
    """It starts with an unquoted ``~``, or has one where bash may expand it."""
    split: bool = False
    """It holds an unquoted expansion: it may become several words, or none."""

    @property
    def masked(self) -> str:
        """Its text, with NUL for everything from the first expansion on."""
        if self.known:
            return self.text
        found = _EXPANSION.search(self.text)
        return self.text[: found.start()] + "\0" if found else self.text + "\0"


def read_words(node: Node, fail: Fail) -> list[Word]:
    """Return the words that a word becomes once braces are expanded: usually itself."""
    source = source_of(node)
    if not _BRACED.fullmatch(source):
        return [read_word(node, fail)]
    texts = _expanded(source)
    if not texts:
        return [Word(source, known=False, split=True)]
    return [Word(text, glob=bool(_SPECIAL.search(text)), tilde="=~" in text or ":~" in text) for text in texts]


def _expanded(source: str) -> list[str]:
    """Return the words that braces expand to; an empty list if they are too many, or not plain."""
    found = _BRACES.search(source)
    if found is None:
        return [] if "{" in source or "}" in source else [source]
    choices = found[1].split(",")
    if len(choices) < 2:
        first, _, last = found[1].partition("..")
        choices = _between(first, last)
    texts = [text for choice in choices for text in _expanded(source[: found.start()] + choice + source[found.end() :])]
    return texts if len(texts) <= _MAX_BRACED else []


def _between(first: str, last: str) -> list[str]:
    """Return the words that ``{1..3}`` or ``{a..c}`` expands to, in rising order."""
    if re.fullmatch(r"-?\d{1,6}", first, re.ASCII) and re.fullmatch(r"-?\d{1,6}", last, re.ASCII):
        low, high = sorted((int(first), int(last)))
        return [str(number) for number in range(low, high + 1)] if high - low < _MAX_BRACED else []
    if re.fullmatch("[a-z]", first) and re.fullmatch("[a-z]", last):
        low, high = sorted((ord(first), ord(last)))
        return [chr(number) for number in range(low, high + 1)]
    return []


def read_word(node: Node, fail: Fail) -> Word:
    """Return a word without its quotes."""
    if node.type not in ("word", "number", "string", "raw_string", "concatenation"):
        one_word = node.type in ("process_substitution", "arithmetic_expansion", "ansi_c_string")
        return Word(source_of(node), known=False, split=not one_word)
    if node.type == "concatenation":
        return _concatenation(node, fail)
    source = source_of(node)
    if node.type == "raw_string":
        return Word(source[1:-1])
    if node.type == "string":
        return _string(node, source)
    if _WRONG_IN_WORD.search(source):
        fail(f"`{short_source(node)}` is not understood")
    return Word(
        _ESCAPE.sub(r"\1", source),
        glob=bool(_SPECIAL.search(source)) and source not in ("{", "}", "{}"),
        tilde=source.startswith("~") or "=~" in source or ":~" in source,
    )


def _concatenation(node: Node, fail: Fail) -> Word:
    parts = [read_word(child, fail) for child in node.named_children]
    if not covered(node, blank=False) or len(parts) != len(node.children):
        fail("a part of it is not understood")
    text = "".join(part.text for part in parts)
    braces = ("," in text or ".." in text) and any(source_of(child) in ("{", "}") for child in node.named_children)
    return Word(
        text,
        known=all(part.known for part in parts) and not braces,
        glob=any(part.glob for part in parts) and text != "{}",
        tilde=parts[0].tilde,
        split=braces or any(part.split for part in parts),
    )


def _string(node: Node, source: str) -> Word:
    if any(child.type != "string_content" for child in node.named_children):
        return Word(source[1:-1], known=False, split="$@" in source or "@]" in source)
    return Word(_STRING_ESCAPE.sub(r"\1", source[1:-1]))


def covered(node: Node, *, blank: bool = True) -> bool:
    """Whether the children cover all of a node's text, except blanks: nothing was skipped."""
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
