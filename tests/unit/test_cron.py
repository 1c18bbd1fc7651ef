"""Cron expressions: what is read, in which zone, and when they are due, also where clocks are put forward or back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.errors import UsageError
from agentmesh.store.cron import next_time, read_cron, words

WORKDAYS = "0 9 * * 1-5 Europe/Berlin"
NIGHT = "30 2 * * * Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        (WORKDAYS, WORKDAYS),
        ("  0   9 * * 1-5\tEurope/Berlin ", WORKDAYS),
        ("*/5 8-17 L jan-mar MON#1 UTC", "*/5 8-17 L jan-mar MON#1 UTC"),
        ("0 9 * * 1-5", "0 9 * * 1-5 America/New_York"),
    ],
)
def test_an_expression_always_gets_its_time_zone(monkeypatch, text, cron):
    monkeypatch.setenv("TZ", ":America/New_York")
    assert read_cron(text) == cron
    assert read_cron(cron) == cron


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set ``TZ`` as for a new process."""

    def begin_with(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield begin_with
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", ["UTC0", "/etc/passwd", "Europe", "no/where", "../zone", "\u00e4"])
def test_where_the_system_names_no_zone_it_is_utc(clocks, zone):
    clocks(zone)
    assert read_cron("0 9 * * *") == "0 9 * * * UTC"


@pytest.mark.parametrize("zone", ["CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST", "<+0530>-5:30", ":EST5"])
def test_a_zone_without_a_name_is_refused_and_not_taken_for_utc(clocks, zone):
    clocks(zone)
    with pytest.raises(UsageError, match="this machine's has no name: TZ is") as refused:
        read_cron("0 9 * * *")
    assert "Europe/Berlin" in refused.value.hint
    assert read_cron(WORKDAYS) == WORKDAYS


@pytest.mark.parametrize("zone", ["/usr/share/zoneinfo/Asia/Kathmandu", ":/etc/localtime"])
def test_a_zone_that_tz_names_by_a_file_is_that_zone(monkeypatch, zone):
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setattr("os.path.realpath", lambda path: "/usr/share/zoneinfo/Asia/Kathmandu")
    assert read_cron("0 9 * * *") == "0 9 * * * Asia/Kathmandu"


def test_without_tz_it_is_the_zone_of_the_system(monkeypatch):
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr("os.path.realpath", lambda path: "/usr/share/zoneinfo/Asia/Kathmandu")
    assert read_cron("0 9 * * *") == "0 9 * * * Asia/Kathmandu"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "0 fields, not 5"),
        ("9 * * *", "4 fields, not 5"),
        ("@daily", "1 field, not 5"),
        ("0 0 9 * * *", "the sixth field is not a time zone"),
        ("0 9 * * * Europe/Nowhere", "the sixth field is not a time zone"),
        ("0 9 * * * ../../etc/passwd", "the sixth field is not a time zone"),
        ("0 0 9 * * * UTC", "7 fields, not 5"),
        ("61 * * * *", "bad minute"),
        ("0 24 * * *", "bad hour"),
        ("0 9 30 2 *", "bad day-of-month"),
        ("0 9 * * 5-1", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("0-70 * * * *", "bad minute"),
        ("0 0 31 4,6,9 *", "bad day-of-month"),
        ("*/61 * * * *", "the step of the minute is larger than 60"),
        ("0,30,5-50/61 * * * *", "the step of the minute is larger than 60"),
        ("0 */25 * * *", "the step of the hour is larger than 24"),
        ("0 9 */32 * *", "the step of the day-of-month is larger than 31"),
        ("0 9 1 */13 *", "the step of the month is larger than 12"),
        ("0 9 * * */8", "the step of the day-of-week is larger than 7"),
        ("0 9 * * someday", "bad day-of-week"),
        (f"{','.join('5' * 100)} * * * * UTC", "more than 200 characters"),
        ("9" * 199, "1 field, not 5"),
    ],
)
def test_what_is_no_expression_says_why(text, why):
    with pytest.raises(UsageError, match=why) as refused:
        read_cron(text)
    assert refused.value.hint


@pytest.mark.parametrize("text", ["*/60 * * * *", "0 */24 * * *", "0 9 */31 */12 *", "0 9 * * */7"])
def test_a_step_as_large_as_its_field_is_read(text):
    assert read_cron(f"{text} UTC") == f"{text} UTC"


_WORD = st.text(alphabet="0123456789*/-,#LWl\u00b2\uff11 JANMOUTC", min_size=1, max_size=8)


@given(st.lists(_WORD, min_size=3, max_size=7).map(" ".join) | st.text(max_size=40))
def test_any_text_is_an_expression_or_refused_in_words(text):
    try:
        cron = read_cron(text)
    except UsageError:
        return
    now = datetime(2026, 11, 25, 12, tzinfo=UTC)
    due = next_time(cron, now)
    assert due is None or due > now
    assert words(cron)


def test_the_next_time_is_later_and_a_minute_away_at_least():
    assert next_time("* * * * * UTC", at("2026-11-25T12:00:00.5+00:00")) == at("2026-11-25T12:01:00+00:00")
    assert next_time("* * * * * UTC", at("2026-11-25T12:00:00+00:00")) == at("2026-11-25T12:01:00+00:00")


def test_a_fixed_time_follows_the_clocks_of_its_zone():
    assert next_time(WORKDAYS, at("2026-07-03T12:00+00:00")) == at("2026-07-06T07:00+00:00")
    assert next_time(WORKDAYS, at("2026-12-04T12:00+00:00")) == at("2026-12-07T08:00+00:00")


def test_a_time_that_the_clocks_leave_out_is_due_when_they_go_on():
    due = next_time(NIGHT, at("2026-03-28T12:00+01:00"))
    assert due == at("2026-03-29T03:00+02:00")
    assert next_time(NIGHT, due) == at("2026-03-30T02:30+02:00")
    both = "0,30 2 * * * Europe/Berlin"
    assert next_time(both, due) == at("2026-03-30T02:00+02:00"), "two that are left out are due once"


def test_a_time_that_comes_twice_is_due_once():
    first = next_time(NIGHT, at("2026-10-24T12:00+02:00"))
    assert first == at("2026-10-25T02:30+02:00")
    tomorrow = at("2026-10-26T02:30+01:00")
    assert next_time(NIGHT, first) == tomorrow
    assert next_time(NIGHT, at("2026-10-25T02:10+01:00")) == tomorrow, "also for a worker that looks in the second hour"


@pytest.mark.parametrize(
    ("cron", "since", "due"),
    [
        ("0 2 * * * Europe/Berlin", "2026-03-28T12:00+01:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        ("0 2 * * * Europe/Berlin", "2026-10-24T12:00+02:00", ["2026-10-25T02:00+02:00", "2026-10-26T02:00+01:00"]),
        ("0 2,3 * * * Europe/Berlin", "2026-03-28T12:00+01:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"]),
        ("0 2,3 * * * Europe/Berlin", "2026-10-24T12:00+02:00", ["2026-10-25T02:00+02:00", "2026-10-25T03:00+01:00"]),
        ("0 1-3 * * * Europe/Berlin", "2026-10-25T01:00+02:00", ["2026-10-25T02:00+02:00", "2026-10-25T03:00+01:00"]),
        ("15 2 * * * Australia/Lord_Howe", "2026-10-03T12:00Z", ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
        ("0 0 * * * America/Havana", "2026-03-07T12:00Z", ["2026-03-08T01:00-04:00", "2026-03-09T00:00-04:00"]),
        ("30 0 * * * America/Havana", "2026-10-31T12:00Z", ["2026-11-01T00:30-04:00", "2026-11-02T00:30-05:00"]),
    ],
)
def test_where_clocks_change_each_fixed_time_is_due_once(cron, since, due):
    moment = at(since)
    for expected in due:
        found = next_time(cron, moment)
        assert found == at(expected)
        moment = found


def test_every_half_hour_stays_every_half_hour_while_clocks_are_put_back():
    moment, seen = at("2026-10-25T01:30+02:00"), []
    for _ in range(4):
        seen.append(moment)
        moment = next_time("*/30 * * * * Europe/Berlin", moment) or moment
    assert {later - earlier for earlier, later in pairwise(seen)} == {timedelta(minutes=30)}


@pytest.mark.parametrize("cron", ["0 0 */29 2 1#5 UTC", "not to be read", "0 9 * * * Europe/Nowhere", "x x x x x UTC"])
def test_an_expression_that_is_never_due_has_no_next_time(cron):
    assert next_time(cron, at("2026-11-25T12:00+00:00")) is None


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        (WORKDAYS, "at 09:00 on Monday through Friday, Europe/Berlin"),
        ("* * * * * UTC", "every minute, UTC"),
        ("what SQL stored", "what SQL stored"),
    ],
)
def test_it_is_said_in_words(cron, said):
    assert words(cron) == said
