"""Markdown as styled lines: a text is parsed into blocks, and a block is wrapped into lines when it is shown.

Textual's Markdown has a widget per block. With many blocks on the screen that delays keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from textual.content import Content, Span
from textual.highlight import highlight
from textual.style import Style

from agentmesh.tui.conversation.columns import Align, columns

_NARROWEST = 8
"""The least width of a text, however deeply nested; longer lines are cut."""
_CODE = "on $surface"
_INLINE = {"em": "italic", "strong": "bold", "s": "strike", "code_inline": "$text-warning"}
_BLANKS = re.compile(r"\s+")
_HEADINGS = {"h1": "bold underline $text-primary", "h2": "bold $text-primary"}
_EMPTY = Content("")


class Line(NamedTuple):
    """One line of a width."""

    before: Content
    """The text at its left: indentation, a bullet, the bar of a quotation."""
    content: Content
    fill: str = ""
    """The style of all that is right of ``before``, to the end of the line."""
    between: str = "\n"
    """A copy has this before the line: a blank if the line was wrapped."""


class TextPart(NamedTuple):
    """Text with ``first`` before its first line and ``rest`` before the others."""

    content: Content
    first: Content
    rest: Content
    fill: str = ""

    def lines(self, width: int) -> Iterator[Line]:
        """Wrap."""
        room = max(width - self.rest.cell_length - 2 * bool(self.fill), _NARROWEST)
        before = self.first
        for line in self.content.split("\n", allow_blank=True):
            wrapped = [line] if line.cell_length <= room else line.wrap(room)
            for place, piece in enumerate(wrapped):
                yield Line(before, piece, self.fill, " " if place else "\n")
                before = self.rest


class Rule(NamedTuple):
    """A line across."""

    before: Content

    def lines(self, width: int) -> Iterator[Line]:
        """Draw it."""
        yield Line(self.before, Content.styled("─" * max(width - self.before.cell_length, 1), "$dim"))


class Table(NamedTuple):
    """Rows of cells, the first of them the head."""

    rows: Sequence[Sequence[Content]]
    aligned: Sequence[Align]
    first: Content
    rest: Content

    def lines(self, width: int) -> Iterator[Line]:
        """Lay it out."""
        before = self.first
        for line in columns(self.rows, max(width - self.rest.cell_length, _NARROWEST), self.aligned):
            yield Line(before, line)
            before = self.rest


class Block:
    """A block of the outermost level: a paragraph, a table, one item of a list, ..."""

    def __init__(
        self, parts: Sequence[TextPart | Rule | Table], *, is_item: bool = False, continues: bool = False
    ) -> None:
        self._is_item, self._continues = is_item, continues
        self._parts = parts
        self._laid_out: tuple[int, list[Line]] = (0, [])

    def is_apart(self, before: Block) -> bool:
        """Whether a blank line stands between it and the block before it."""
        return not (self._continues or (self._is_item and before._is_item))

    def lines(self, width: int) -> list[Line]:
        """Return its lines; they are made once for a width."""
        if self._laid_out[0] != width:
            self._laid_out = width, [line for part in self._parts for line in part.lines(width)]
        return self._laid_out[1]


@dataclass(frozen=True, slots=True)
class Source:
    """A block, and where it stands in the text that was parsed."""

    block: Block
    begins: int
    """Its first line."""


def parse(text: str) -> list[Source]:
    """Return the blocks of a text."""
    return [Source(block, begins) for begins, block in _blocks(SyntaxTreeNode(_parser().parse(text)))]


def rough(text: str, *, is_code: bool) -> Block:
    """Return unparsed text as a block that continues the one before."""
    return Block([TextPart(Content(text.expandtabs(4)), _EMPTY, _EMPTY, _CODE if is_code else "")], continues=True)


@cache
def _parser() -> MarkdownIt:
    """Return the parser. With HTML off, tags are shown as the text that they are.

    Only an address with a scheme becomes a link: ``calc.py`` and ``README.md`` end like domains of countries.
    """
    parser = MarkdownIt("gfm-like", {"html": False})
    if parser.linkify:  # always: it comes with textual
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False})
    return parser


def _blocks(root: SyntaxTreeNode) -> Iterator[tuple[int, Block]]:
    for node in root.children:
        items = node.children if node.type in _LISTS else ()
        for item in items:
            yield _line(item), Block(list(_item(item, _EMPTY, _EMPTY)), is_item=True)
        if not items:
            yield _line(node), Block(list(_parts(node, _EMPTY, _EMPTY)))


def _line(node: SyntaxTreeNode) -> int:
    return node.map[0] if node.map else 0


_LISTS = ("bullet_list", "ordered_list")
_BULLETS = "•▪‣"


def _flow(
    nodes: Iterable[SyntaxTreeNode], first: Content, rest: Content, depth: int = 0
) -> Iterator[TextPart | Rule | Table]:
    """Return the parts of blocks inside another, with blank lines between them but before a list in an item."""
    for place, node in enumerate(nodes):
        if place and not (depth and node.type in _LISTS):
            yield TextPart(_EMPTY, rest, rest)
        yield from _parts(node, rest if place else first, rest, depth)


def _parts(node: SyntaxTreeNode, first: Content, rest: Content, depth: int = 0) -> Iterator[TextPart | Rule | Table]:
    match node.type:
        case "heading":
            yield TextPart(_inline(node).stylize_before(_HEADINGS.get(node.tag, "bold")), first, rest)
        case "fence" | "code_block":
            yield TextPart(_code(node), first, rest, _CODE)
        case "blockquote":
            bar = Content.styled("▌ ", "$dim")
            yield from _flow(node.children, first + bar, rest + bar)
        case "bullet_list" | "ordered_list":
            for place, item in enumerate(node.children):
                yield from _item(item, rest if place else first, rest, depth)
        case "table":
            rows = [[_inline(cell) for cell in row.children] for section in node.children for row in section.children]
            aligned = [_align(cell) for cell in node.children[0].children[0].children]
            yield Table(rows, aligned, first, rest)
        case "hr":
            yield Rule(first)
        case _:
            yield TextPart(_inline(node), first, rest)


def _item(item: SyntaxTreeNode, first: Content, rest: Content, depth: int = 0) -> Iterator[TextPart | Rule | Table]:
    mark = f"{item.info}. " if item.info else f"{_BULLETS[depth % len(_BULLETS)]} "
    first, rest = first + Content.styled(mark, "$text-primary"), rest + Content(" " * len(mark))
    if item.children:
        yield from _flow(item.children, first, rest, depth + 1)
    else:
        yield TextPart(_EMPTY, first, rest)


def _align(cell: SyntaxTreeNode) -> Align:
    """Return how the column of a cell of the head is aligned."""
    name = str(cell.attrs.get("style", "")).removeprefix("text-align:")
    return next((align for align in Align if align.value == name), Align.LEFT)


def _code(node: SyntaxTreeNode) -> Content:
    """Return highlighted code; without a language it stays plain, because guessing takes a second."""
    words = node.info.split()
    return highlight(node.content.rstrip("\n").expandtabs(4), language=words[0] if words else "text")


def _inline(node: SyntaxTreeNode) -> Content:
    """Return the text of a paragraph, heading or cell."""
    found = _Inline([], [], 0)
    for child in node.children:
        found.add(child)
    return Content("".join(found.texts), spans=found.spans)


@dataclass(slots=True)
class _Inline:
    """Gathers text and its styles."""

    texts: list[str]
    spans: list[Span]
    length: int

    def add(self, node: SyntaxTreeNode) -> None:
        """Take a node and all in it."""
        start, style, text = self.length, _style(node), _text(node)
        self.texts.append(text)
        self.length += len(text)
        for child in node.children:
            self.add(child)
        if style:
            self.spans.append(Span(start, self.length, style))


def _text(node: SyntaxTreeNode) -> str:
    """Return the text of a node without its children."""
    match node.type:
        case "softbreak":
            return " "
        case "hardbreak":
            return "\n"
        case "image":
            return "🖼 "
        case "code_inline":
            return node.content
        case _:
            return "" if node.children else _BLANKS.sub(" ", node.content)


def _style(node: SyntaxTreeNode) -> str | Style:
    if node.type in ("link", "image"):
        target = node.attrs.get("href") or node.attrs.get("src")
        return Style(underline=True) + Style.from_meta({"@click": f"open({str(target)!r})"})
    return _INLINE.get(node.type, "")
