"""How long an outage of the database is put up with: once, for followers of sessions and for the MCP server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agentmesh.app import outage
from agentmesh.app.outage import Outage
from agentmesh.domain.errors import DatabaseUnreachable

LOST = DatabaseUnreachable("gone")


@pytest.fixture
def at(monkeypatch):
    """Set the clock that outages are measured by."""
    return lambda seconds: monkeypatch.setattr(outage, "time", SimpleNamespace(monotonic=lambda: seconds))


def test_five_minutes_of_failures_are_endured_and_no_more(at):
    met = Outage()
    for seconds in range(0, 301, 50):
        at(1000.0 + seconds)
        assert met.pause(LOST) == outage._MOMENT
    at(1301.0)
    with pytest.raises(DatabaseUnreachable, match="gone"):
        met.pause(LOST)


def test_a_failure_after_a_minute_without_one_begins_another_outage(at):
    met = Outage()
    for seconds in range(0, 1000, 61):
        at(1000.0 + seconds)
        assert met.pause(LOST) == outage._MOMENT


def test_an_answer_of_the_database_ends_the_outage(at):
    met = Outage()
    for seconds in range(0, 1000, 50):
        at(1000.0 + seconds)
        assert met.pause(LOST) == outage._MOMENT
        met.end()
