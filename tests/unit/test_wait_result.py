"""A wait's result as one line for people."""

from __future__ import annotations

import pytest

from agentmesh.domain.wait_result import summary


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"status": "received", "message": "x"}, "a received"),
        ({"status": "idle", "output": "done"}, "a idle"),
        ({"status": "idle", "error": "401"}, "a failed"),
        ({"status": "idle", "error": "interrupted by the user"}, "a interrupted"),
        ({"status": "dead"}, "a dead"),
        ({"error": "there is no such agent"}, "a unknown"),
        ({"status": "received", "message": "x", "more": 2}, "a received (+2)"),
    ],
)
def test_each_agent_is_said_with_how_it_stands(entry, said):
    assert summary({"outcome": "complete", "results": [{"name": "a", "agent_id": "1", **entry}]}) == f"complete: {said}"
