"""Markdown as lines, whole and while it grows."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual.content import Content
from textual.style import Style

from agentmesh.tui.conversation.columns import columns
from agentmesh.tui.conversation.document import LONG, Document
from agentmesh.tui.conversation.markdown import Block, Line, Source, parse

MIXED = """\
# A title

A paragraph with *emphasis*, **strength**, `code`, ~~a mistake~~ and [a link](https://example.org),
which goes on in a second line.

- one
- two
  - nested

    with a paragraph
- three

3. third
4. fourth

> quoted
>
> - a list in it

```python
def answer():
    return 42
```

| name | value |
|---|---|
| first | 1 |
| second | a **long** one |

Title by underline
---

![picture](x.png) <b>tag</b>

***

The end.
"""


def lines(document: Document, width: int = 60) -> list[Line]:
    return [line for block in document.blocks for line in block.lines(width)]


def texts(document: Document, width: int = 60) -> list[str]:
    return [(line.before + line.content).plain.rstrip() for line in lines(document, width)]


def whole(text: str) -> Document:
    return Document().grown(text).finished()


def streamed(text: str, size: int) -> Document:
    document = Document()
    for at in range(0, len(text), size):
        document = document.grown(text[at : at + size])
    return document.finished()


def test_each_kind_of_block_has_its_lines():
    assert texts(whole(MIXED)) == [
        "A title",
        "A paragraph with emphasis, strength, code, a mistake and a",
        "link, which goes on in a second line.",
        "• one",
        "• two",
        "  ▪ nested",
        "",
        "    with a paragraph",
        "• three",
        "3. third",
        "4. fourth",
        "▌ quoted",
        "▌",
        "▌ • a list in it",
        "def answer():",
        "    return 42",
        "name   │ value",
        "───────┼───────────",
        "first  │ 1",
        "second │ a long one",
        "Title by underline",
        "🖼 picture <b>tag</b>",
        "─" * 60,
        "The end.",
    ]


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_what_grows_looks_in_the_end_as_what_came_at_once(size):
    assert lines(streamed(MIXED, size)) == lines(whole(MIXED))


LONG_BLOCKS = {
    "code": "```python\n" + "".join(f"value_{n} = 'text'  # why\n" for n in range(300)) + "```\n",
    "table": "| name | value |\n|---|---|\n" + "".join(f"| row {n} | **{n}** |\n" for n in range(300)),
    "paragraph": "words of *one* paragraph " * 400,
    "lines of a paragraph": "a line of *one* paragraph\n" * 400,
    "list": "".join(f"- item {n} is **bold**\n" for n in range(300)),
    "item": "- the item\n\n" + "".join(f"  - nested {n}\n" for n in range(500)),
    "quotation": "> quoted *words*\n" * 400,
}


@pytest.mark.parametrize("text", LONG_BLOCKS.values(), ids=LONG_BLOCKS.keys())
@pytest.mark.parametrize("end", ["", "\n\nThe end.\n\n- an item\n"])
def test_a_long_block_is_shown_while_it_grows_and_drawn_when_it_ends(text, end):
    document = Document()
    for at in range(0, len(text), 331):
        document = document.grown(text[at : at + 331])
        assert len(document.tail) <= LONG + 331 or document.rough is not None
        newest = text[: at + 331].split()[-1].strip("*|~`->'")
        seen = [line for block in document.blocks[-2:] for line in block.lines(60)][-3:]
        assert newest in " ".join(line.content.plain for line in seen), "what came last is not seen"
    if end:
        document = document.grown(end)
        assert document.rough is None
        assert texts(document)[-2:] == ["The end.", "• an item"]
    assert lines(document.finished()) == lines(whole(text + end))


ALIGNED = """\
| left | right | middle | none |
|:--|--:|:-:|---|
| a | 1 | x | y |
| longer | 1,000 | 日本語 | 😀 |
| **b** | `22` | four | |
"""


def test_columns_of_a_table_are_aligned_as_it_says_also_with_wide_characters():
    assert texts(whole(ALIGNED)) == [
        "left   │ right │ middle │ none",
        "───────┼───────┼────────┼─────",
        "a      │     1 │   x    │ y",
        "longer │ 1,000 │ 日本語 │ 😀",
        "b      │    22 │  four  │",
    ]


@pytest.mark.parametrize("width", range(8, 40))
def test_a_narrow_table_keeps_its_columns(width):
    text = "| name | 数 |\n|:-:|--:|\n| some words that wrap | 日本語日本語 |\n| 日本語 | 7 |\n"
    shown = lines(whole(text), width)
    bars = {cell_len(line.content.plain.partition("│")[0].partition("┼")[0]) for line in shown}
    assert len(bars) == 1
    assert {line.content.cell_length for line in shown} == {shown[1].content.cell_length}


def test_the_narrowest_column_loses_no_wide_character():
    shown = list(columns([[Content("日本語"), Content("x"), Content("多くの言葉")]], 8))
    assert "".join(sorted("".join(line.plain for line in shown[:-1]).replace("│", "").replace(" ", ""))) == "".join(
        sorted("日本語x多くの言葉")
    )


def test_names_of_files_are_no_web_links():
    told = "See calc.py, README.md and main.rs, a@b.org, https://example.org/x and [a link](https://example.org)."
    spans = [span for line in lines(whole(told), 200) for span in line.content.spans]
    links = [span.style.meta["@click"] for span in spans if isinstance(span.style, Style) and span.style.meta]
    assert links == ["open('https://example.org/x')", "open('https://example.org')"]


def test_code_that_never_ends_stays_code():
    text = "~~~\n" + "plain code\n" * 500 + "\n\nnot the end\n"
    document = streamed(text, 331)
    assert lines(document) == lines(whole(text))
    assert len(document.blocks) == 1


def test_growing_parses_only_what_may_still_change(monkeypatch):
    text = MIXED * 5 + LONG_BLOCKS["code"] * 2
    parsed: list[int] = []

    def counted(text: str) -> list[Source]:
        parsed.append(len(text))
        return parse(text)

    monkeypatch.setattr("agentmesh.tui.conversation.markdown.parse", counted)
    streamed(text, 80)
    assert sorted(parsed)[-3] < LONG + 200, "only a long block that has ended is parsed whole"


@pytest.mark.parametrize("width", [1, 5, 20])
def test_a_screen_may_be_too_narrow_for_anything(width):
    assert lines(whole(MIXED + "> " * 20 + "deep\n"), width)


def test_columns_that_need_little_keep_it_and_the_others_wrap():
    text = "| n | words | more |\n|---|---|---|\n| 1 | " + "many words " * 9 + "| " + "others " * 9 + "|\n| 2 |\n"
    drawn = texts(whole(text), 40)
    assert drawn[0].startswith("n │ words")
    assert max(map(len, drawn)) <= 40
    assert drawn[-1].startswith("2 │")


def test_nothing_is_parsed_twice_for_another_width():
    (block,) = whole("words " * 30).blocks
    assert isinstance(block, Block)
    assert len(block.lines(20)) > len(block.lines(60))
    assert block.lines(60) is block.lines(60)
