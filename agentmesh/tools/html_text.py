"""A web page as Markdown that a model can read: headings, lists, links, tables and code, without scripts and styles."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from agentmesh.tools.html_tokens import Tag, tokens

MOST_CHARACTERS: Final = 4 << 20
"""Size limit of a page as Markdown: with its links written out, it may be far longer than the HTML."""

_DROPPED: Final = frozenset(
    {"script", "style", "template", "svg", "canvas", "noscript", "noembed", "noframes", "iframe", "object", "select"}
)
_BLOCKS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("p", "table", "ul", "ol", "dl", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "pre"), 2),
    **dict.fromkeys(("div", "section", "article", "main", "header", "footer", "nav", "aside", "figure", "form"), 1),
    **dict.fromkeys(("figcaption", "tr", "li", "dt", "dd", "details", "summary", "fieldset", "address"), 1),
}
"""Block elements, with the line breaks around them: 2 leave a blank line."""
_HOLDING: Final = frozenset({"li", "ul", "ol", "tr", "td", "th", "table"})
_BLANKS: Final = re.compile(r"[ \t\r\n\f]+")
_DEEPEST: Final = 8
"""Levels of lists and quotes that are indented."""
_MAIN_ENOUGH: Final = 200
"""Characters that <main> must have to replace the whole page."""
_TICK: Final = 4096
"""Tokens between two calls of ``tick``."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, converted."""

    text: str
    title: str
    truncated: bool


class _Writer:
    """Converts one page."""

    def __init__(self, base: str) -> None:
        self._base = base
        self.title = ""
        self.truncated = False
        self._out: list[str] = []
        self._size = 0
        self._breaks = 0
        self._blank = False
        self._line_begun = False
        self._marked = False
        """An item or a cell has begun and is still empty."""
        self._lists: list[int | None] = []
        """The next number in each open list; None for a list without numbers."""
        self._quotes = 0
        self._verbatim = 0
        self._dropped = ""
        self._drop_depth = 0
        self._link: tuple[int, str] | None = None
        self._cells = 0
        self._in_title = False
        self._main: tuple[int, int] | None = None

    @property
    def text(self) -> str:
        """The text of <main> if it is long enough, otherwise of the whole page."""
        if self._main:
            main = "".join(self._out[slice(*self._main)]).strip()
            if len(main) >= _MAIN_ENOUGH:
                return main
        return "".join(self._out).strip()

    def read(self, source: str, tick: Callable[[], None]) -> None:
        """Read a whole page; an exception from ``tick`` ends it."""
        for count, token in enumerate(tokens(source)):
            if count % _TICK == 0:
                tick()
            if isinstance(token, str):
                self._text(token)
            elif self._dropped or token.name in _DROPPED:
                self._drop(token)
            elif token.end:
                self._end(token.name)
            else:
                self._start(token)
            if self._size > MOST_CHARACTERS:
                self.truncated = True
                return

    def _drop(self, tag: Tag) -> None:
        """Count the open elements of the kind that is being left out."""
        if not self._dropped and not tag.end and not tag.attributes.endswith("/"):
            self._dropped, self._drop_depth = tag.name, 1
        elif tag.name == self._dropped:
            self._drop_depth += -1 if tag.end else 1
            if self._drop_depth == 0:
                self._dropped = ""

    def _start(self, tag: Tag) -> None:
        name = tag.name
        self._break(self._lines(name))
        if name in _STARTS:
            _STARTS[name](self, tag)
        elif len(name) == 2 and name[0] == "h" and name[1] in "123456":
            self._put("#" * int(name[1]) + " ")

    def _end(self, name: str) -> None:
        if name in _ENDS:
            _ENDS[name](self)
        if name in _HOLDING:
            self._marked = False
        self._break(self._lines(name))

    def _lines(self, name: str) -> int:
        """Return how many line breaks an element wants before and after it."""
        return 1 if name in ("ul", "ol") and self._lists else _BLOCKS.get(name, 0)

    def _text(self, data: str) -> None:
        if self._dropped:
            return
        if self._in_title:
            self.title = self.title or _BLANKS.sub(" ", data).strip()
            return
        if self._verbatim:
            self._put(data.replace("\r\n", "\n"))
            return
        words = _BLANKS.sub(" ", data)
        self._blank |= words.startswith(" ")
        if stripped := words.strip(" "):
            self._put(stripped)
            self._blank = words.endswith(" ")

    def _put(self, text: str) -> None:
        """Write text, after any pending line breaks or blank."""
        if self._breaks:
            if self._out:
                self._add("\n" * self._breaks)
            self._add("> " * min(self._quotes, _DEEPEST) + "  " * (min(len(self._lists), _DEEPEST) - 1))
            self._breaks, self._blank = 0, False
        if self._blank and self._line_begun:
            self._add(" ")
        self._blank = self._marked = False
        self._line_begun = not text.endswith(" ")
        self._add(text)

    def _add(self, text: str) -> None:
        self._out.append(text)
        self._size += len(text)

    def _break(self, lines: int) -> None:
        if lines and not self._verbatim and not self._marked:
            self._breaks = max(self._breaks, lines)
            self._line_begun = False

    # What elements do besides starting new lines

    def item(self, _tag: Tag) -> None:
        self._new_line()
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        self._mark("- " if number is None else f"{number}. ")

    def _new_line(self) -> None:
        self._marked = False
        self._break(1)

    def _mark(self, text: str) -> None:
        """Write the mark before the content of an item or a cell; the content follows on the same line."""
        self._put(text)
        self._marked = True

    def begin_link(self, tag: Tag) -> None:
        self.end_link()
        href = tag.get("href").strip()
        if href and not href.startswith(("#", "javascript:", "data:")):
            self._link = (len(self._out), href)

    def end_link(self) -> None:
        """Turn the text written since a link began into a link; if it has several lines, only append the address."""
        if self._link is None:
            return
        (start, href), self._link = self._link, None
        written = "".join(self._out[start:])
        inner = written.strip()
        if not inner:
            return
        try:
            url = urljoin(self._base, href)
        except ValueError:
            return
        before = written[: len(written) - len(written.lstrip())]
        del self._out[start:]
        self._size -= len(written)
        self._add(f"{before}{inner} ({url})" if "\n" in inner else f"{before}[{inner}]({url})")

    def image(self, tag: Tag) -> None:
        if alt := _BLANKS.sub(" ", tag.get("alt")).strip():
            self._put(f"[image: {alt}]")

    def cell(self, _tag: Tag) -> None:
        if self._cells:
            self._breaks = 0  # from a block in the cell before
            self._mark(" | ")
        self._cells += 1

    def begin_row(self, _tag: Tag) -> None:
        self._new_line()
        self._cells = 0

    def rule(self, _tag: Tag) -> None:
        self._break(2)
        self._put("---")
        self._break(2)

    def begin_verbatim(self, _tag: Tag) -> None:
        if not self._verbatim:
            self._put("```\n")
        self._verbatim += 1

    def end_verbatim(self) -> None:
        if self._verbatim == 1:
            self._put("" if self._out[-1].endswith("\n") else "\n")
            self._put("```")
        self._verbatim = max(self._verbatim - 1, 0)

    def code(self) -> None:
        if not self._verbatim:
            self._put("`")

    def line_break(self) -> None:
        if self._verbatim:
            self._put("\n")
        else:
            self._break(1)

    def begin_list(self, first: int | None) -> None:
        self._lists.append(first)

    def end_list(self) -> None:
        if self._lists:
            self._lists.pop()

    def quote(self, by: int) -> None:
        self._quotes = max(self._quotes + by, 0)

    def titled(self, inside: bool) -> None:
        self._in_title = inside

    def begin_main(self, _tag: Tag) -> None:
        if self._main is None:
            self._main = (len(self._out), len(self._out))

    def end_main(self) -> None:
        if self._main is not None:
            self._main = (self._main[0], len(self._out))


_STARTS: Final[Mapping[str, Callable[[_Writer, Tag], None]]] = {
    "a": _Writer.begin_link,
    "blockquote": lambda writer, _tag: writer.quote(1),
    "br": lambda writer, _tag: writer.line_break(),
    "code": lambda writer, _tag: writer.code(),
    "hr": _Writer.rule,
    "img": _Writer.image,
    "li": _Writer.item,
    "main": _Writer.begin_main,
    "ol": lambda writer, _tag: writer.begin_list(1),
    "pre": _Writer.begin_verbatim,
    "td": _Writer.cell,
    "th": _Writer.cell,
    "title": lambda writer, _tag: writer.titled(True),
    "tr": _Writer.begin_row,
    "ul": lambda writer, _tag: writer.begin_list(None),
}
_ENDS: Final[Mapping[str, Callable[[_Writer], None]]] = {
    "a": _Writer.end_link,
    "blockquote": lambda writer: writer.quote(-1),
    "code": _Writer.code,
    "main": _Writer.end_main,
    "ol": _Writer.end_list,
    "pre": _Writer.end_verbatim,
    "title": lambda writer: writer.titled(False),
    "ul": _Writer.end_list,
}


def markdown(source: str, base: str, tick: Callable[[], None]) -> Page:
    """Return a page as Markdown, with its links resolved against its own address; call ``tick`` now and then."""
    writer = _Writer(base)
    writer.read(source, tick)
    return Page(writer.text, writer.title, writer.truncated)
