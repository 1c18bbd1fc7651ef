"""States and rows: closed sets that are the words of the database."""

from __future__ import annotations

import dataclasses
import inspect
import re
import uuid
from pathlib import Path

import pytest

from agentmesh.domain import rows
from agentmesh.domain.ids import AgentId, short
from agentmesh.domain.rows import Ref
from agentmesh.domain.states import AgentStatus, CallStatus, Kind, PermissionMode

TABLES = (Path(__file__).parents[2] / "migrations" / "versions" / "0001_baseline.sql").read_text()


def allowed(where: str, column: str) -> set[str]:
    """Return the values that a table, or the function that its check calls, allows in a column."""
    body = TABLES.split(f"create {where}")[1].split("\n\n")[0]
    check = re.search(rf"\b{column} in \((.*?)\)", re.sub(r"--.*", "", body), re.DOTALL)
    assert check is not None
    return set(re.findall(r"'(\w+)'", check.group(1)))


@pytest.mark.parametrize(
    ("where", "column", "enum"),
    [
        ("function agentmesh.agent_is_sound(", "status", AgentStatus),
        ("function agentmesh.row_is_sound(", "kind", Kind),
        ("function agentmesh.call_is_sound(", "status", CallStatus),
        ("table agentmesh.sessions (", "permission_mode", PermissionMode),
    ],
)
def test_the_enums_are_what_the_tables_allow(where: str, column: str, enum: type[AgentStatus]):
    assert {str(member) for member in enum} == allowed(where, column)


def test_rows_are_frozen():
    for name, row in inspect.getmembers(rows, dataclasses.is_dataclass):
        assert getattr(row, "__dataclass_params__").frozen, name  # noqa: B009  mypy knows no such attribute


def test_an_agent_is_named_by_name_and_id():
    id_ = uuid.UUID("abcd1234-0000-4000-8000-000000000000")
    assert short(id_) == "abcd1234"
    assert Ref(AgentId(id_), "a").json() == {"agent_id": str(id_), "name": "a"}
