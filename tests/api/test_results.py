"""Typed results in Python."""

from __future__ import annotations

from dataclasses import dataclass
from types import GenericAlias
from typing import Any

import pytest
from pydantic import BaseModel, Field, RootModel, TypeAdapter, field_validator
from typing_extensions import TypedDict  # pydantic refuses that of typing before Python 3.12

import agentmesh
from tests.api.conftest import Open
from tests.fixtures.engine import Rig, call, do, say


class Place(BaseModel):
    file: str
    line: int = Field(ge=1)


class Count(BaseModel):
    files: int
    places: list[Place] = []


class Even(BaseModel):
    files: int

    @field_validator("files")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Names(RootModel[list[str]]):
    pass


class Tree(RootModel[Node]):
    pass


@dataclass
class Spot:
    file: str
    line: int = 1


class Pair(TypedDict):
    first: int
    second: int


@pytest.fixture
def session(open_mesh: Open) -> agentmesh.Session:
    mesh = open_mesh()
    return mesh.start_session(permission_mode="all")


def test_a_fork_with_a_model_returns_an_instance_of_it(rig: Rig, open_mesh: Open):
    rig.script("count", do(call("report", files=2, places=[{"file": "a.py", "line": 0}])), do(call("report", files=3)))
    rig.script("root", say("seen"))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        child = session.fork("count", "Count.", schema=Count)
        child.wait(timeout=60)
        session.wait(timeout=60)
    assert child.result(Count) == Count(files=3)
    assert child.result() == {"files": 3}
    told = [row.content for row in child.conversation() if row.kind == "tool_result"]
    assert "places.0.line: 0 is less than the minimum of 1" in str(told[0])
    with pytest.raises(agentmesh.UsageError, match=r"no Even: files: Value error, odd"):
        child.result(Even)


@pytest.mark.parametrize(
    ("model", "reported"),
    [
        (Node, {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}),
        (Tree, {"name": "a", "children": [{"name": "b"}]}),
        (Names, {"result": ["a", "b"]}),
        (Spot, {"file": "a.py"}),
        (Pair, {"first": 1, "second": 2}),
        (list[int], {"result": [1, 2]}),
        (int, {"result": 3}),
    ],
)
def test_a_type_of_any_form_is_read_back(rig: Rig, open_mesh: Open, model: type[Any], reported: dict[str, Any]):
    rig.script("root", say("seen"))
    rig.script("child", do(call("report", **reported)))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        child = session.fork("child", "Report.", schema=model)
        child.wait(timeout=60)
        session.wait(timeout=60)
    assert child.result() == reported
    assert child.result(model) == TypeAdapter(model).validate_python(reported.get("result", reported))


def test_a_dict_is_a_schema_and_a_check_runs(rig: Rig, open_mesh: Open, tmp_path):
    rig.script("count", do(call("report", files=1)), do(call("bash", command="touch made"), call("report", files=2)))
    rig.script("root", say("seen"))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    schema = {"type": "object", "properties": {"files": {"type": "integer"}}}
    with mesh.worker():
        child = session.root.fork("count", "Count.", schema=schema, check="test -f made")
        child.wait(timeout=60)
        session.wait(timeout=60)
    assert child.result() == {"files": 2}
    with pytest.raises(agentmesh.UsageError, match="a JSON Schema is no type"):
        child.result(schema)  # type: ignore[call-overload]
    unknown: list[Any] = [5, agentmesh.Session, GenericAlias(list, "Missing")]
    for wrong in unknown:
        with pytest.raises(agentmesh.UsageError, match="is no schema"):
            child.result(wrong)


def test_what_has_not_reported_says_why(rig: Rig, open_mesh: Open):
    rig.script("count", say("a"), say("b"), say("c"))
    rig.script("root", say("seen"))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    child = session.fork("count", "Count.", schema=Count)
    with pytest.raises(agentmesh.UsageError, match="has not reported yet"):
        child.result(Count)
    with mesh.worker():
        child.wait(timeout=60)
        session.wait(timeout=60)
    with pytest.raises(agentmesh.ModelError, match="no valid report"):
        child.result(Count)
    with pytest.raises(agentmesh.UsageError, match="have no form"):
        session.root.result()
    dead = session.fork("dead", "Count.", schema=Count)
    dead.kill()
    with pytest.raises(agentmesh.UsageError, match="has not reported yet"):
        dead.result()


def test_the_result_of_a_tasks_sub_agent_is_typed_too(rig: Rig, open_mesh: Open):
    schema = {"type": "object", "properties": {"files": {"type": "integer"}}}
    rig.script("root", do(call("task", description="count", prompt="[count] Count.", schema=schema)), say("ok"))
    rig.script("count", do(call("report", files=4)))
    mesh = open_mesh()
    session = mesh.start_session(permission_mode="all")
    with mesh.worker():
        session.run("go", timeout=60)
    assert session.agent("count").result(Count).files == 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"schema": "Count"}, "is no schema"),
        ({"schema": object()}, "is no schema"),
        ({"schema": Count(files=1)}, "is no schema"),
        ({"schema": {"type": "wizard"}}, "invalid schema"),
        ({"check": " "}, "the check is empty"),
        ({"check": "a\0b"}, "NUL"),
    ],
)
def test_what_is_no_form_is_refused(session: agentmesh.Session, wrong: dict[str, Any], words: str):
    with pytest.raises(agentmesh.UsageError, match=words):
        session.fork("count", "Count.", **wrong)
    assert [agent.name for agent in session.list_agents()] == ["root"]
