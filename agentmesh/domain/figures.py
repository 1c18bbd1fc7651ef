"""Counts, amounts and lists as people read them, the same in the terminal, on the screen and on exported pages."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal


def count(number: int) -> str:
    """Return ``941``, ``13k``, ``2.4M``."""
    if number < 1_000:
        return str(number)
    return f"{number / 1_000:.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"


def money(usd: Decimal | float | None) -> str:
    """Return ``$0.0312``, or ``?`` if no price is known."""
    if usd is None:
        return "?"
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def cost(usd: Decimal | None, unpriced_calls: int) -> str:
    """Return what is known of a cost: ``$0.0312``, ``$0.0312 + ?`` if some calls have no known price, ``?`` if all."""
    return money(usd) if not unpriced_calls else f"{money(usd)} + ?" if usd else "?"


def plural(number: int, noun: str) -> str:
    """Return ``1 agent``, ``2,000 agents``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def line_changes(added: int, removed: int) -> str:
    """Return how many lines were added and removed: ``+1,204 −4``."""
    return f"+{added:,} −{removed:,}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
