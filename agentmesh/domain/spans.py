"""Spans of time as people write them: ``90s``, ``10m``, ``2h``, ``1d``."""

from __future__ import annotations

import re
from typing import Final

_SPAN: Final = re.compile(r"([0-9]{1,8}) ?(s|sec|m|min|h|d)")
_SECONDS: Final = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


AGE: Final = 'an age with its unit, as in "90d" or "12h"'
"""What an age is, for complaints."""
_OLDEST: Final = 36_525 * 86_400


def read_age(text: str) -> int | None:
    """Return the seconds of an age: at least one, at most a hundred years; None for other text."""
    seconds = read(text)
    return seconds if seconds is not None and 0 < seconds <= _OLDEST else None


def read(text: str) -> int | None:
    """Return the seconds of a number with its unit; None for other text."""
    found = _SPAN.fullmatch(text.strip().lower())
    return int(found[1]) * _SECONDS[found[2]] if found else None
