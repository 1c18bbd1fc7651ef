"""What people read of an activity where there is little room."""

from __future__ import annotations

import pytest

from agentmesh.domain.activity import fitted, is_held_up

WHY = "openai (model any) at https://models.example.com:8443/v1 cannot be reached: Connection refused"
PAGE = f"openai (model any) failed (HTTP 502): <html>{'<p>bad gateway</p>' * 20}"
PAUSED = f"paused 4 s (gives up in 590 s): {WHY}"


@pytest.mark.parametrize(
    "activity", [PAUSED, f"compacting: {PAUSED}", f"retrying in 1 s: {WHY}", f"compacting: retrying in 12 s: {WHY}"]
)
@pytest.mark.parametrize("width", [60, 80, 100])
def test_17_20_the_reason_of_a_pause_stays_in_sight(activity: str, width: int):
    shown = fitted(activity, width)
    assert len(shown) <= width
    assert shown.startswith(activity.partition(" s")[0])
    assert shown.endswith("Connection refused")
    assert is_held_up(activity)
    assert is_held_up(shown)


@pytest.mark.parametrize(
    ("activity", "width", "shown"),
    [
        (PAUSED, 300, PAUSED),
        (
            PAUSED,
            100,
            "paused 4 s (gives up in 590 s): openai (model an…e.com:8443/v1 cannot be reached: Connection refused",
        ),
        (PAUSED, 40, "paused 4 s: openai…d: Connection refused"),
        (PAUSED, 30, "paused 4 s: Connection refused"),
        (PAUSED, 20, "paused 4 s: Connect…"),
        (
            "paused 20 s (gives up in 600 s): rate-limited by sim (429)",
            45,
            "paused 20 s: rate-limited by sim (429)",
        ),
        (f"retrying in 1 s: {PAGE}", 60, "retrying in 1 s: openai (model any) failed (HTTP 502): <htm…"),
        (f"retrying in 1 s: {PAGE}", 300, f"retrying in 1 s: {PAGE[:282]}…"),
        ("tool: bash with: colons and a long command", 20, "tool: bash with: co…"),
        ("", 40, ""),
    ],
)
def test_17_20_what_is_cut_of_an_activity(activity: str, width: int, shown: str):
    assert fitted(activity, width) == shown
    assert len(shown) <= max(width, 0)
