"""Pages with generated parts: where those are, and how they are replaced. Knows nothing of what stands in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

_PART = re.compile(
    r"^<!-- generated: (?P<name>[a-z-]+); .*? -->\n(?P<text>.*?)^<!-- end of generated -->$", re.MULTILINE | re.DOTALL
)

Part = Callable[[], str]
"""Returns the text of a generated part, without blank lines at its ends."""


def names(text: str) -> list[str]:
    """Return the names of the generated parts of a page, in their order."""
    return [found["name"] for found in _PART.finditer(text)]


def renewed(text: str, parts: Mapping[str, Part]) -> str:
    """Return a page with its generated parts as they should be."""
    return _PART.sub(lambda found: _part(found["name"], parts[found["name"]]()), text)


def _part(name: str, text: str) -> str:
    return f"<!-- generated: {name}; `make docs` writes it, do not edit -->\n\n{text}\n\n<!-- end of generated -->"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [list(heads), ["---"] * len(heads), *([cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """Return a text as it may stand in a cell: one line, its bars escaped, with literals of docstrings as code."""
    return prose(" ".join(text.split())).replace("|", "\\|")


def prose(docstring: str) -> str:
    """Return the text of a docstring as Markdown: ``literals`` in single backticks, nothing that reads as HTML."""
    parts = re.split(r"(``.+?``|`[^`\n]+`)", docstring)
    return "".join(f"`{part.strip('`')}`" if n % 2 else part.replace("<", "&lt;") for n, part in enumerate(parts))


def code(text: object) -> str:
    """Return a text as code; bars are escaped by the cell."""
    return f"`{text}`" if str(text) else ""
