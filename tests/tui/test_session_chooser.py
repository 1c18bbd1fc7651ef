"""The list of sessions."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from decimal import Decimal

from agentmesh.domain.ids import SessionId
from agentmesh.domain.rows import SessionSummary
from agentmesh.tui.board.session_chooser import _choice


def test_a_session_was_active_at_the_time_of_its_readers_clock(monkeypatch):
    at = datetime(2026, 5, 5, 20, 0, tzinfo=UTC)
    one = SessionSummary(SessionId(uuid.UUID(int=1)), "one", "/work", at, None, False, 1, 0, 0, Decimal(0), at)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert "2026-05-06 05:00" in _choice(one, "").after
    finally:
        monkeypatch.undo()
        time.tzset()
