"""Split HTML into tags and text, in one pass; even on a hostile page the time grows only with the length.

``html.parser`` is not used: until recently a hostile page could keep it busy for minutes (CVE-2025-6069), and such
Pythons are still in use.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_PIECE: Final = re.compile(r"""[^>"'=]+|=\s*(?:"[^"]*"|'[^']*')?|["']""")
"""A piece between a tag's name and its end: a quote counts only where a value begins."""
_PIECES: Final = 10_000
"""Pieces of one tag that are looked at; no real page needs more."""
_ATTRIBUTE: Final = re.compile(r"""([^\s/>=]+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)))?""")
_VERBATIM: Final = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
"""Elements with content that holds no tags; only their own end tag ends it."""
_ENDS: Final = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _VERBATIM}


class Tag(NamedTuple):
    """A start or end tag."""

    name: str
    """The name in lower case."""
    end: bool
    attributes: str = ""
    """The source of the attributes."""

    def get(self, name: str) -> str:
        """Return an attribute's value, empty if it is missing."""
        for found in _ATTRIBUTE.finditer(self.attributes):
            if found[1].lower() == name:
                return unescape(found[2] or found[3] or found[4] or "")
        return ""


def tokens(source: str) -> Iterator[Tag | str]:
    """Yield the page's tags and the texts between them, in order, with character references decoded.

    A tag or comment that the page begins and does not end is left out.
    """
    at, length = 0, len(source)
    while at < length:
        found = source.find("<", at)
        if found < 0:
            found = length
        if found > at:
            yield unescape(source[at:found])
        at = found
        if at >= length:
            return
        tag = _NAME.match(source, at)
        if tag is None:
            at, text = _no_tag(source, at)
            if text:
                yield text
            continue
        end = _end_of_tag(source, tag.end())
        if end < 0:
            return
        name, at = tag[2].lower(), end + 1
        yield Tag(name, bool(tag[1]), source[tag.end() : end])
        if name in _VERBATIM and not tag[1]:
            closing = _ENDS[name].search(source, at)
            stop = closing.start() if closing else length
            yield unescape(source[at:stop])
            at = stop


def unescape(text: str) -> str:
    """Return text with its character references decoded."""
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:  # more digits than Python converts to a number
        return text


def _end_of_tag(source: str, at: int) -> int:
    """Return the position of the ``>`` that ends a tag, -1 if there is none."""
    for _ in range(_PIECES):
        piece = _PIECE.match(source, at)
        if piece is None:
            break
        at = piece.end()
    return source.find(">", at)


def _no_tag(source: str, at: int) -> tuple[int, str]:
    """Return where to go on after a ``<`` that begins no tag, and its text, if it counts as text."""
    if source.startswith("<!--", at):
        end, size = source.find("-->", at + 2), 3
    elif source.startswith(("<!", "<?", "</"), at):
        end, size = source.find(">", at), 1
    else:
        return at + 1, "<"
    return (len(source) if end < 0 else end + size), ""
