"""Named statements: ``statement("agents.by_id")`` is the one below ``-- name: by_id`` in ``agents.sql``.

A file in ``queries/`` holds one table's statements; each has its name, a sentence in comments, and then SQL with
``%(name)s`` parameters. A file is read when its first statement is asked for. The other files are the database's own
code: ``functions/``, ``views/`` and ``grants.sql``, which ``agentmesh.store.code`` applies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import LiteralString

_FOLDER = Path(__file__).parent / "queries"
_HEADER = re.compile(r"^-- name: *(\S*) *$", re.MULTILINE)


@cache
def statement(name: str) -> LiteralString:
    """Return the statement ``<file>.<name>``."""
    file, _, own_name = name.partition(".")
    return load(_FOLDER / f"{file}.sql")[own_name]


@cache
def sentence(name: str) -> str:
    """Return the comment above the statement ``<file>.<name>``, as one line."""
    file, _, own_name = name.partition(".")
    _, *parts = _HEADER.split((_FOLDER / f"{file}.sql").read_text(encoding="utf-8"))
    comment, _ = _split(dict(zip(parts[::2], parts[1::2], strict=True))[own_name])
    return " ".join(line.removeprefix("--").strip() for line in comment.splitlines())


def names() -> list[str]:
    """Return the name of every statement there is."""
    return [f"{path.stem}.{name}" for path in sorted(_FOLDER.glob("*.sql")) for name in load(path)]


@cache
def load(path: Path) -> Mapping[str, LiteralString]:
    """Return the statements of one file by name; ValueError if it is not in the form above."""
    before, *parts = _HEADER.split(path.read_text(encoding="utf-8"))
    if _split(before)[1]:
        raise ValueError(f"{path.name}: SQL before the first '-- name:'")
    found: dict[str, LiteralString] = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        sentence, code = _split(text)
        if not name or name in found:
            raise ValueError(f"{path.name}: a statement without a name, or a second one named {name!r}")
        if not sentence or not code:
            raise ValueError(f"{path.name}: {name} needs a sentence in comments and then a statement")
        # Literal in fact: it is the program's own file, never text from outside.
        found[name] = code
    return MappingProxyType(found)


def _split(text: str) -> tuple[str, str]:
    """Return the comment at the head of the text and the code below it."""
    lines = text.strip().splitlines()
    length = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return "\n".join(lines[:length]), "\n".join(lines[length:]).strip().rstrip(";")
