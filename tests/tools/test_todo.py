"""The todo tool, called by a model in a real turn."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from agentmesh.tools.todo import TodoArgs


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"action": "steal"},
        {"action": "done", "id": 0},
        {"action": "done", "id": 2**63},
        {"action": "add", "content": "x", "after": [1] * 21},
        {"action": "add", "content": "x", "after": [0]},
        {"action": "add", "content": "x", "after": [1, 2**63]},
    ],
)
def test_wrong_arguments_are_refused_before_the_database_is_asked(arguments):
    with pytest.raises(ValidationError):
        TodoArgs.model_validate(arguments)
