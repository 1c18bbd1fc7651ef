"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentmesh.cli.moments import read_moment
from agentmesh.domain.errors import UsageError

NOW = datetime(2026, 11, 22, 14, 30, 15, 5, tzinfo=UTC).astimezone()


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("10m", timedelta(minutes=10)),
        ("10 min ago", timedelta(minutes=10)),
        ("90s", timedelta(seconds=90)),
        (" 2H ago ", timedelta(hours=2)),
        ("3d", timedelta(days=3)),
        ("0s", timedelta()),
    ],
)
def test_so_long_ago(text: str, before: timedelta):
    assert read_moment(text, NOW) == NOW - before


def test_a_time_of_day_is_the_last_one_there_was():
    past, later = NOW - timedelta(minutes=5), NOW + timedelta(minutes=5)
    assert read_moment(f"{past:%H:%M:%S}", NOW) == past.replace(microsecond=0)
    assert read_moment(f"{later:%H:%M}", NOW) == later.replace(second=0, microsecond=0) - timedelta(days=1)


def test_a_date_is_in_the_readers_zone_unless_it_names_one():
    assert read_moment("2026-11-20 08:00", NOW) == datetime(2026, 11, 20, 8).astimezone()
    assert read_moment("2026-11-20T08:00:00.5+02:00", NOW) == datetime(2026, 11, 20, 6, 0, 0, 500000, tzinfo=UTC)
    assert read_moment("2026-11-20", NOW) == datetime(2026, 11, 20).astimezone()


@pytest.mark.parametrize(
    "text",
    ["", "now", "25:00", "12:60", "10", "-5m", "2026-13-01", "1000000000d", "999999d", "99999999d ago", "2026-11-23"],
)
def test_what_is_no_time_or_still_to_come_is_refused(text: str):
    with pytest.raises(UsageError):
        read_moment(text, NOW)
