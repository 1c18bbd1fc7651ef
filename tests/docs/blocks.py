"""The blocks of a page, with what the comments above them say about how they are run.

A comment of HTML stands right above its block and is not seen by readers of the page:

    <!-- not run: WHY -->            it cannot be run here; tests/docs/not_run.py lists them all
    <!-- setup -->                   shell lines in the comment itself, run where it stands, that wait or tidy up
    <!-- file: PATH -->              the block is this file; ~/ is the reader's home, else it is the project's
    <!-- until: TEXT -->             the last command goes on: it is ended by Ctrl+C when this is in its output
    <!-- screen until: TEXT -->      the command opens the terminal UI: it is left when this is on the screen
    <!-- exit: N -->                 the last command ends with this exit code
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
_COMMENT = re.compile(r"<!-- *(not run|file|until|screen until|exit): *(.*?) *-->", re.DOTALL)
_SETUP = re.compile(r"<!-- setup\n(.*?)-->", re.DOTALL)
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end of generated -->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code, or a setup."""

    page: str
    """The page's path in the repository."""
    line: int
    language: str
    """``setup`` for a setup; empty where none is given, or the block is made by indenting."""
    text: str
    says: dict[str, str]
    """What the comment above it says."""
    output: str | None = None
    """The ``text`` block right below, which is what it prints."""

    @property
    def where(self) -> str:
        """``docs/index.md:12``."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return the pages whose blocks are run: all of docs but the decisions, and the README."""
    found = (path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)
    return [ROOT / "README.md", *sorted(found)]


def read(path: Path) -> list[Block]:
    """Return the blocks of a page; generated parts have none, other tests look at them."""
    text = _GENERATED.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
    return list(_joined(_blocks(text, str(path.relative_to(ROOT)))))


def _blocks(text: str, page: str) -> Iterator[tuple[Block, int, bool]]:
    """Yield each block with the line after its end, and whether something stands between it and the one before."""
    says: dict[str, str] = {}
    between = True
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.map is None or token.nesting < 0:
            continue
        if token.type == "html_block":
            says |= {kind: " ".join(words.split()) for kind, words in _COMMENT.findall(token.content)}
            for lines in _SETUP.findall(token.content):
                yield Block(page, token.map[0] + 1, "setup", lines, {}), token.map[1], True
        elif token.type in ("fence", "code_block"):
            language = (token.info.split() or [""])[0]
            yield Block(page, token.map[0] + 1, language, token.content, says), token.map[1], between
            says, between = {}, False
            continue
        elif token.type not in ("list_item_open", "bullet_list_open", "ordered_list_open"):
            says = {}
        between = True


def _joined(found: Iterator[tuple[Block, int, bool]]) -> Iterator[Block]:
    """Yield the blocks, each with the output that stands right below it."""
    held: Block | None = None
    for block, _end, between in found:
        is_output = block.language == "text" and not block.says and not between
        if is_output and held is not None and held.language in ("console", "sql", "python") and held.output is None:
            yield Block(held.page, held.line, held.language, held.text, held.says, block.text)
            held = None
            continue
        if held is not None:
            yield held
        held = block
    if held is not None:
        yield held


def fits(pattern: str, text: str) -> bool:
    """Whether a text is what a page shows: `…` stands for anything in a line, alone on a line for any lines.

    How many blanks stand between two words says how wide a column is, and is not compared.
    """
    shown = "".join(f"{_narrow(line)}\n" for line in text.splitlines())
    return re.fullmatch("".join(_line(_narrow(line)) for line in pattern.splitlines()), shown) is not None


def _narrow(line: str) -> str:
    return re.sub(r"(?<=\S) +", " ", line.rstrip())


def _line(line: str) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    return "[^\n]*".join(re.escape(part) for part in line.split("…")) + r"\n"
