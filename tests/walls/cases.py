"""The attack lines: read from ``corpus/*.txt``, each with a name by which a test tells which one had an effect.

In these files ``# text`` is the head of a group; every other line is a case. A line that begins with ``| `` continues
the case above it on a new line. A case that begins with ``%e `` is written with Python's escapes. ``@WORDS@`` stand
for places of the ground on which the attack is made.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "corpus"
_MORE = "| "
_ESCAPED = "%e "
_WORD = re.compile(r"@([A-Z]+)@")


@dataclass(frozen=True, slots=True)
class Case:
    """One attack."""

    name: str
    """File and place in it: ``parsing-017``."""
    group: str
    text: str
    number: int
    """Place in its file."""

    def filled(self, words: Mapping[str, str]) -> str:
        """Return the command, with what its ``@WORDS@`` stand for."""
        return _WORD.sub(lambda found: words[found[1]], self.text)


@cache
def corpus(*files: str) -> tuple[Case, ...]:
    """Return the cases of these files, in their order."""
    return tuple(case for file in files for case in _read(file))


def _read(file: str) -> list[Case]:
    cases: list[Case] = []
    group, lines = "", list[str]()

    def finish() -> None:
        if lines:
            text = "\n".join(lines)
            if text.startswith(_ESCAPED):
                text = codecs.decode(text.removeprefix(_ESCAPED), "unicode_escape")
            cases.append(Case(f"{file}-{len(cases) + 1:03}", group, text, len(cases)))
            lines.clear()

    for line in (_FOLDER / f"{file}.txt").read_text().splitlines():
        if line.startswith(_MORE) or line == _MORE.rstrip():
            lines.append(line.removeprefix(_MORE) if line.startswith(_MORE) else "")
            continue
        finish()
        if line.startswith("# "):
            group = line.removeprefix("# ")
        elif line:
            lines.append(line)
    finish()
    return cases
