"""How numbers with their units are written in the report and its pictures."""

from __future__ import annotations


def amount(number: float, unit: str) -> str:
    """Write a number with its unit: three digits below a thousand, none after the point above."""
    if unit == "x":
        return f"{number:.2f} ×"
    digits = f"{number:,.0f}" if number == int(number) or abs(number) >= 1000 else f"{number:.3g}"
    return f"{digits}{' ' if unit and unit != '/s' else ''}{unit}"
