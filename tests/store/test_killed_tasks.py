"""Issue 17, point 5: the result of a killed task counts every call that its sub-agent has made."""

from __future__ import annotations

import pytest

from agentmesh.store import steps
from tests.fixtures.mesh import Mesh


@pytest.mark.parametrize("started", [False, True], ids=["open", "started"])
def test_17_5_a_killed_task_reports_its_calls_also_those_that_ran(mesh: Mesh, started: bool):
    call = mesh.call(mesh.root, "task")[0]
    child = mesh.task(mesh.root, "victim", call)
    done, *open_calls = mesh.call(child, "read", "bash", "bash")
    mesh.finish(done, {"ok": True})
    if started:
        mesh.run(steps.start_calls, open_calls[0], [1])
    mesh.kill(child)
    result = mesh.result(call)
    assert (result["status"], result["tool_calls"]) == ("killed", 3)
    assert mesh.one("select tool_calls from agentmesh.agents where id = %s", child) == 3


def test_17_5_tasks_of_a_killed_sub_agent_are_counted_where_anybody_can_read_them(mesh: Mesh):
    outer = mesh.call(mesh.root, "task")[0]
    boss = mesh.task(mesh.root, "boss", outer)
    inner = mesh.call(boss, "task")[0]
    helper = mesh.task(boss, "helper", inner)
    mesh.call(helper, "bash")
    mesh.kill(boss)
    assert mesh.result(outer)["tool_calls"] == 1, "its call of task"
    assert mesh.result(inner) == {"error": "killed"}
    assert mesh.column("select distinct status from agentmesh.tasks") == ["killed"]
