"""Long pastes, which the input shows as one placeholder each: ``[pasted 214 lines]``."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 20
"""Lines of a paste that is shown as it is."""
_FORM = re.compile(r"\[pasted [\d,]+ lines(?:, \d+)?\]")


class Span(NamedTuple):
    """Where a placeholder stands in a line."""

    start: int
    end: int
    text: str
    """What it stands for."""


class FoldedPastes:
    """Knows the paste of each placeholder. An edited placeholder would have no paste, so a person cannot edit one."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, pasted: str) -> str:
        """Return the placeholder of a long paste, a short one as it is."""
        lines = len(pasted.splitlines())
        if lines <= LONGEST:
            return pasted
        known = next((mark for mark, text in self._texts.items() if text == pasted), None)
        if known:
            return known
        marks = (f"[pasted {lines:,} lines{f', {n}' if n > 1 else ''}]" for n in range(1, len(self._texts) + 2))
        mark = next(mark for mark in marks if mark not in self._texts)
        self._texts[mark] = pasted
        return mark

    def fold_again(self, text: str) -> str:
        """Return a text from the history or an editor with the known pastes in it folded."""
        for mark, pasted in self._texts.items():
            text = text.replace(pasted, mark)
        return text

    def whole(self, text: str) -> str:
        """Return the text with the pasted text in place of every placeholder."""
        return _FORM.sub(lambda found: self._texts.get(found[0], found[0]), text) if self._texts else text

    def spans(self, line: str) -> list[Span]:
        """Return the placeholders in a line."""
        if not self._texts:
            return []
        found = _FORM.finditer(line)
        return [Span(one.start(), one.end(), self._texts[one[0]]) for one in found if one[0] in self._texts]
