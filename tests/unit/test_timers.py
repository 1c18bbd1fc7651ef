from __future__ import annotations

import pytest

from agentmesh.domain.errors import UsageError
from agentmesh.domain.timers import read_span, read_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), (" 10 M ", 600), ("10min", 600), ("2h", 7200), ("1d", 86400), ("0s", 0)],
)
def test_a_span_of_time(text, seconds):
    assert read_span(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "-1s", "1.5h", "1h30m", "nan", "1e9", "999999999s", "soon", "m", "2h ago", "１m"]
)
def test_what_is_no_span(text):
    with pytest.raises(UsageError, match="is not a span of time"):
        read_span(text)


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-12-01", "2026-12-01T10:00", "2026-12-01T10:00+25:00", "12:00"])
def test_a_time_without_its_zone_is_none(text):
    with pytest.raises(UsageError, match="with its time zone"):
        read_time(text)


def test_a_time_with_its_zone():
    assert read_time(" 2026-12-01T10:00Z ").isoformat() == "2026-12-01T10:00:00+00:00"
