"""What a fork's report must look like, as rows: who owes one, and what the table refuses."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import BadArgument, Fenced, NotATask
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, forms, steps
from agentmesh.store.send_many import send_many
from agentmesh.tools import report
from agentmesh.tools.words import description
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def fork(mesh: Mesh, **shape: Any) -> Any:
    return mesh.run(agents.fork, mesh.root, "counter", "count", shape=Shape(**{"schema": COUNT, **shape}))


def test_from_psql_the_tool_has_the_words_and_the_form_of_python(mesh: Mesh):
    child = mesh.one(
        "select agentmesh.fork(%s, 'c', 'count', schema => %s)", mesh.root, psycopg.types.json.Jsonb(COUNT)
    )
    tools = mesh.one("select tools from agentmesh.v_agents where id = %s", child)
    assert tools[-1] == report.definition(COUNT)
    assert tools[-1]["function"]["description"] == description("report")


def test_a_fork_of_a_fork_with_a_form_has_one_report(mesh: Mesh):
    child = fork(mesh)
    other = {"type": "object", "properties": {"text": {}}}
    below = mesh.run(agents.fork, child, "below", "x", shape=Shape(schema=other))
    tools = mesh.one("select tools from agentmesh.v_agents where id = %s", below)
    named = [tool["function"] for tool in tools if tool["function"]["name"] == "report"]
    assert [tool["parameters"] for tool in named] == [other]


def test_a_report_is_taken_with_the_mail_in_one_commit(mesh: Mesh):
    child = fork(mesh)
    owed = mesh.run(forms.owed, child)
    assert owed is not None
    assert (owed.schema, owed.check_command) == (COUNT, None)
    assert mesh.run(steps.report, mesh.call(child, "report")[0], {"n": 3}) is AgentStatus.IDLE
    same = "select f.xmin = m.xmin from agentmesh.forms f join agentmesh.mail m on m.sender = f.agent_id"
    assert mesh.one(f"{same} where m.about = 'report'") is True
    found = mesh.run(forms.reported, child)
    assert found is not None
    assert (found.status, found.result, found.attempts) == ("reported", {"n": 3}, 1)


def test_a_message_to_one_or_to_several_is_no_report(mesh: Mesh):
    child = fork(mesh)
    mesh.send(child, mesh.root, "half done")
    mesh.run(send_many, child, [mesh.root], "nearly done")
    mesh.run(send_many, child, Audience.SESSION, "done")
    assert mesh.one("select owes_report from agentmesh.agents where id = %s", child)


def test_the_dead_owe_nothing(mesh: Mesh):
    above = mesh.fork(mesh.root, "above", "work")
    child = mesh.run(agents.fork, above, "counter", "count", shape=Shape(schema=COUNT))
    lease = mesh.call(child, "report")[0]
    mesh.run(agents.kill, above)
    assert mesh.one("select status from agentmesh.v_forms") == "killed"
    with pytest.raises(Fenced):
        mesh.run(steps.report, lease, {"n": 3})
    assert mesh.one("select count(*) from agentmesh.mail where automatic") == 0


def test_who_has_no_form_can_report_nothing(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    assert mesh.run(forms.owed, child) is None
    assert mesh.run(forms.reported, child) is None
    with pytest.raises(NotATask):
        mesh.run(steps.report, mesh.call(child, "report")[0], {"n": 3})


@pytest.mark.parametrize(
    "shape",
    [{"schema": {}}, {"schema": {"type": "array"}}, {"check": ""}, {"check": " \n"}, {"check": "x" * 8193}],
)
def test_what_is_no_form_is_refused(mesh: Mesh, shape: Any):
    with pytest.raises(BadArgument):
        fork(mesh, **shape)
    assert mesh.one("select count(*) from agentmesh.forms") == 0


def test_without_a_prompt_there_is_nothing_to_report(mesh: Mesh):
    with pytest.raises(BadArgument, match="needs a prompt"):
        mesh.run(agents.fork, mesh.root, "idle", shape=Shape(schema=COUNT))


@pytest.mark.parametrize(
    "wrong",
    ["status = 'reported'", "ended_at = now()", "attempts = 4", "check_exit = 1", "schema = '[]'", "result = '{}'"],
)
def test_the_table_refuses_what_cannot_be(mesh: Mesh, wrong: str):
    fork(mesh)
    with pytest.raises(psycopg.errors.CheckViolation):
        mesh.conn.execute(f"update agentmesh.forms set {wrong}")
