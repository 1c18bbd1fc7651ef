"""What a screen says of a task that has ended."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from agentmesh.tui.session.tasks import ended


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("two files", "two files"),
        ({"files": 2, "first": ["ä", None]}, '{"files": 2, "first": ["ä", null]}'),
        ({"result": "the secrets are gone"}, "the secrets are gone"),
        ({"result": 3}, '{"result": 3}'),
    ],
    ids=["text", "a form", "the text of a report without a form", "a form with that name"],
)
def test_a_result_is_text_or_json(result: Any, said: str):
    found = ended({"status": "completed", "agent_id": str(uuid.uuid4()), "name": "a", "result": result})
    assert found is not None
    assert found.said == said
