"""todo_write, what engine and store make of it, and how its arguments look to a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentmesh.domain.todos import Todo, TodoStatus, read_todos
from agentmesh.engine import arguments
from agentmesh.engine.tool import ToolError
from agentmesh.store import transcript
from agentmesh.tools import toolset
from agentmesh.tools.todo_write import TodoWrite
from tests.fixtures.engine import Rig, do, say
from tests.fixtures.engine import call as asked
from tests.tools.calling import call

DONE, NOW, NEXT = (
    {"content": "one", "status": "completed"},
    {"content": "two", "status": "in_progress"},
    {"content": "three", "status": "pending"},
)


def test_items_are_counted():
    assert call(TodoWrite(), Path("/"), items=[DONE, NOW, NEXT]) == {"items": 3, "open": 2}
    assert call(TodoWrite(), Path("/"), items=[]) == {"items": 0, "open": 0}


def test_two_items_in_progress_are_taken_with_advice():
    result = call(TodoWrite(), Path("/"), items=[NOW, NOW])
    assert (result["items"], result["open"]) == (2, 2)
    assert "in_progress" in result["note"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('{"items": [{"content": "x", "status": "done"}]}', "items.0.status"),
        ('{"items": [{"content": "", "status": "pending"}]}', "items.0.content"),
        ('{"items": [{"status": "pending"}]}', "items.0.content"),
        ('{"items": [' + ", ".join(['{"content": "x", "status": "pending"}'] * 101) + "]}", "100"),
        ("{}", "items"),
    ],
)
def test_what_is_no_list_is_refused_in_words(given: str, words: str):
    with pytest.raises(ToolError, match=words):
        arguments.read(TodoWrite(), given)


def test_the_schema_has_no_references():
    (found,) = toolset.definitions({"todo_write": TodoWrite()})
    items = found["function"]["parameters"]["properties"]["items"]
    assert items["items"]["properties"]["status"]["enum"] == ["pending", "in_progress", "completed"]
    assert items["items"]["required"] == ["content", "status"]
    assert "$" not in str(found)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ('{"items": [{"content": "x", "status": "pending"}]}', [Todo("x", TodoStatus.PENDING)]),
        ('{"items": "[{\\"content\\": \\"x\\", \\"status\\": \\"pending\\"}]"}', [Todo("x", TodoStatus.PENDING)]),
        ('{"items": [{"content": "x"}, {"status": []}, 3, null]}', []),
        ('{"items": "x"}', []),
        ("[1]", []),
        ("{", []),
        ("", []),
    ],
)
def test_a_list_is_read_from_what_a_model_wrote(given: str, found: list[Todo]):
    assert read_todos(given) == found


def test_the_newest_list_that_was_taken_is_the_agents(rig: Rig):
    def write(*items: dict[str, Any]):
        return asked("todo_write", items=list(items))

    rig.script(
        "root", do(write(NEXT)), do(write(NEXT), write(DONE, NOW)), do(write({"content": "no status"})), say("ok")
    )
    rig.worker()
    assert rig.run() == "ok"
    assert rig.db.run(transcript.todos, rig.root) == [
        Todo("one", TodoStatus.COMPLETED),
        Todo("two", TodoStatus.IN_PROGRESS),
    ]
    assert rig.db.run(transcript.todos, rig.fork("child")) == [], "a child begins with none"
