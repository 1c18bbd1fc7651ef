"""Check that our pages, docstrings and SQL comments are written in short sentences of plain English.

``make check`` runs it. It prints one ``file:line: message`` for each finding, and fails if there is one.
Limits, phrases and the folders that nobody has read yet are in prose.toml.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_CONFIGURATION = Path(__file__).with_suffix(".toml")

# Text that nobody reads as a sentence: blanked line by line, so that line numbers stay right.
_NOT_PROSE = [
    re.compile(r"<!-- generated.*?<!-- end of generated -->", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE),
    re.compile(r"^(#|\||:::).*$", re.MULTILINE),
]
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_CODE = re.compile(r"(`+)[^`]+?\1")
_LIST_OF_NAMES = re.compile(r"`(?:,?\s+(?:(?:and|or)\s+)?`\w*`)+")
_NEW_BLOCK = re.compile(r"\s*(?:[-*]|\d+\.)\s|    |\t|>>> |[A-Z]\w+:$|\w+: ")
_SQL_LINES = re.compile(r"(?:^[ \t]*--.*\n)+", re.MULTILINE)
_SQL_MARK = re.compile(r"^[ \t]*-- ?(?:name: .*)?", re.MULTILINE)
_SQL_TEXT = re.compile(r"^comment on [^']*'((?:[^']|'')*)';", re.MULTILINE)
_END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?][\"')*_]*(?=\s|$)")
_WORD = re.compile(r"[\w`][^\s–]*")


@dataclass(frozen=True)
class Block:
    """A paragraph or list item: its text, line breaks included, and the line of the file that it begins on."""

    line: int
    text: str

    def line_at(self, offset: int) -> int:
        """Return the line of the file that the character at `offset` is on."""
        return self.line + self.text.count("\n", 0, offset)


@dataclass(frozen=True)
class Phrase:
    """A way of writing that we refuse, and what to write instead."""

    pattern: re.Pattern[str]
    use: str


@dataclass(frozen=True)
class Rules:
    """What prose.toml says."""

    words: int
    phrases: tuple[Phrase, ...]
    pages: tuple[str, ...]
    code: tuple[str, ...]
    not_read_yet: tuple[str, ...]

    @classmethod
    def load(cls, path: Path = _CONFIGURATION) -> Rules:
        """Read the rules from a TOML file."""
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        phrases = tuple(Phrase(re.compile(one["no"], re.MULTILINE), one["use"]) for one in values["phrases"])
        lists = {name: tuple(values[name]) for name in ("pages", "code", "not_read_yet")}
        return cls(values["words"], phrases, **lists)


def main() -> int:
    """Print the findings in this repository; return 1 if there are any."""
    found = list(findings(_ROOT, Rules.load()))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


def findings(root: Path, rules: Rules) -> Iterator[str]:
    """Yield `file:line: message` for everything in the tree that the rules refuse."""
    skipped = {path for pattern in rules.not_read_yet for path in root.glob(pattern)}
    for pattern in (*rules.pages, *rules.code):
        for path in sorted({*root.glob(pattern)} - skipped):
            for line, message in check(path.name, path.read_text(encoding="utf-8"), rules):
                yield f"{path.relative_to(root)}:{line}: {message}"


def check(name: str, text: str, rules: Rules) -> list[tuple[int, str]]:
    """Return the line and message of each finding in one file: a page, a module's docstrings, or SQL comments."""
    if name.endswith(".py"):
        parts = docstrings(text)
    elif name.endswith(".sql"):
        parts = sql_comments(text)
    else:
        parts = [(1, newest(text) if name == "CHANGELOG.md" else text)]
    found = [
        (block.line_at(offset), message)
        for line, part in parts
        for block in blocks(part, line)
        for offset, message in faults(block.text, rules)
    ]
    return sorted(found)


def docstrings(source: str) -> list[tuple[int, str]]:
    """Return line and text of every string that stands alone: docstrings, and those below attributes."""
    return [
        (node.lineno, node.value.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def sql_comments(source: str) -> list[tuple[int, str]]:
    """Return line and text of every comment in SQL: whole lines of ``--``, and the texts of ``comment on``."""
    lines = [(found.start(), _SQL_MARK.sub("", found[0])) for found in _SQL_LINES.finditer(source)]
    texts = [(found.start(1), found[1].replace("''", "'")) for found in _SQL_TEXT.finditer(source)]
    return [(source.count("\n", 0, start) + 1, text) for start, text in (*lines, *texts)]


def newest(changelog: str) -> str:
    """Return a changelog up to the end of its newest section."""
    headings = [match.start() for match in re.finditer(r"^## \[", changelog, re.MULTILINE)]
    return changelog[: headings[1]] if len(headings) > 1 else changelog


def blocks(text: str, line: int = 1) -> Iterator[Block]:
    """Yield the paragraphs and list items of a Markdown text or docstring, without code, tables, headings and links."""
    for pattern in _NOT_PROSE:
        text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _LINK.sub(r"\1", text)
    text = _CODE.sub(lambda match: "`x`" + "\n" * match[0].count("\n"), text)
    begun, lines = line, list[str]()
    for number, one in enumerate([*text.split("\n"), ""], line):
        if lines and (not one.strip() or _NEW_BLOCK.match(one)):
            yield Block(begun, "\n".join(lines))
            lines = []
        if one.strip():
            begun = begun if lines else number
            lines.append(one.strip())


def faults(text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    """Yield offset and message of each sentence that is too long, and of each phrase that we refuse."""
    begin = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        words = len(_WORD.findall(_LIST_OF_NAMES.sub("`", text[begin:end])))
        if words > rules.words:
            first = begin + len(text[begin:end]) - len(text[begin:end].lstrip())
            yield first, f"{words} words in a sentence; {rules.words} at most"
        begin = end
    for phrase in rules.phrases:
        for match in phrase.pattern.finditer(text):
            shown = " ".join(match[0].split())
            yield match.start(), f"“{shown}”: {phrase.use}"


if __name__ == "__main__":
    sys.exit(main())
