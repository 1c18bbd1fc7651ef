"""How times, texts of a width, near caps and permission rules are written for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from agentmesh.domain.text import one_line, visible

if TYPE_CHECKING:
    from decimal import Decimal

_RULE = 200
"""Characters of one rule that are shown."""


def duration(seconds: float) -> str:
    """Return seconds as people read them: 12 s, 3 min 05 s, 2 h 04 min, 3 days 01 h."""
    whole = int(max(seconds, 0.0))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    if whole < 172_800:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 86_400} days {whole % 86_400 // 3600:02} h"


def cut(text: str, width: int) -> str:
    """Return the text in at most so many cells, with ``…`` where its end is left out."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def fit(text: str, width: int) -> str:
    """Return the text in exactly so many cells: cut like ``cut``, or followed by blanks."""
    return set_cell_size(cut(text, width), width)


def is_near(used: Decimal | int | None, cap: Decimal | int | None) -> bool:
    """Whether more than 80 % of a cap are used."""
    return used is not None and cap is not None and used * 10 > cap * 8


def rule_text(rule: Mapping[str, str]) -> str:
    """Return a rule as the configuration has it: ``bash(git commit *)``."""
    return one_line(visible(f"{rule['tool']}({rule['pattern']})"), _RULE)
