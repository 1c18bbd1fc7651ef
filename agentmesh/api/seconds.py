"""Spans of time as programs give them."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TypeAlias

from agentmesh.domain.errors import UsageError

Span: TypeAlias = float | timedelta
"""Seconds, or a timedelta."""


def seconds_of(value: object, what: str) -> float | None:
    """Return a span in seconds, None if none is given; raise UsageError, naming ``what``, for what is no span."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
        return float(value)
    raise UsageError(f"{what} is no span of time", hint="Give seconds or a timedelta, or leave it out (None).")
