"""What screens and logs read of tasks."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import DeadAgent, NoSuchTask
from agentmesh.store import agents, steps, tasks


def test_a_screen_sees_the_tasks_of_steps_in_which_one_still_runs(mesh):
    first, second = mesh.call(mesh.root, "task", "task")
    fast = mesh.task(mesh.root, "fast", first)
    slow = mesh.task(mesh.root, "slow", second)
    elsewhere = mesh.new_session()
    mesh.task(elsewhere, "other")
    mesh.finish(mesh.call(slow, "read")[0])
    mesh.answer(fast)
    seen = {view.child: view for view in mesh.run(tasks.shown, mesh.session)}
    assert {child: (view.status, view.tool_calls) for child, view in seen.items()} == {
        fast: ("completed", 0),
        slow: (None, 1),
    }
    assert [(view.seq, view.ordinal) for view in seen.values()] == [(first.seq, 0), (second.seq, 1)]
    assert all(view.seconds >= 0 for view in seen.values())
    mesh.answer(slow)
    assert mesh.run(tasks.shown, mesh.session) == []


def test_a_further_task_counts_from_its_own_beginning(mesh):
    child = mesh.task(mesh.root, "helper")
    mesh.finish(mesh.call(child, "read")[0])
    mesh.answer(child)
    (again,) = mesh.call(mesh.root, "task")
    mesh.run(steps.task, again, {"agent_id": str(child), "prompt": "more", "description": "", "max_steps": 5})
    (view,) = mesh.run(tasks.shown, mesh.session)
    assert (view.child, view.tool_calls, view.tokens) == (child, 0, 0)


def test_the_tasks_of_a_step_are_named_with_their_sub_agents(mesh):
    first, second = mesh.call(mesh.root, "task", "task")
    child = mesh.task(mesh.root, "helper", second)
    (given,) = mesh.run(tasks.given, mesh.root, first.seq)
    assert (given.ordinal, given.child, given.name, given.subagent_type) == (1, child, "helper", "general-purpose")
    assert mesh.run(tasks.given, mesh.root, first.seq - 1) == []


def test_only_a_task_that_a_call_waits_for_goes_to_the_background(mesh):
    child = mesh.task(mesh.root, "helper")
    mesh.run(agents.background, child)
    with pytest.raises(NoSuchTask, match="in the background already"):
        mesh.run(agents.background, child)
    mesh.answer(child)
    for idle in (child, mesh.root):
        with pytest.raises(NoSuchTask, match="works on no task"):
            mesh.run(agents.background, idle)
    mesh.run(agents.kill, child)
    with pytest.raises(DeadAgent):
        mesh.run(agents.background, child)


def test_nobody_waits_for_a_task_in_the_background_so_it_closes_no_circle(mesh):
    child = mesh.task(mesh.root, "helper", background=True)
    assert mesh.wait(child, mesh.root) is None


def test_killing_a_background_tasks_agent_is_told_to_its_parent(mesh):
    child = mesh.task(mesh.root, "helper", background=True)
    mesh.run(agents.kill, child)
    body, failed = mesh.conn.execute("select body, failed from agentmesh.mail where automatic").fetchone()
    assert (body, failed) == ("The task ended as killed: killed.", True)


@pytest.mark.parametrize("first", ["parent", "helper"])
def test_an_interrupted_call_of_task_names_its_sub_agent_whoever_stops_first(mesh, first):
    task, other = mesh.call(mesh.root, "task", "bash")
    helper = mesh.task(mesh.root, "helper", task)
    mesh.begin(helper)
    mesh.interrupt(mesh.root)
    for agent in (mesh.root, helper) if first == "parent" else (helper, mesh.root):
        mesh.run(steps.stop_turn, mesh.lease(agent))
    result = mesh.result(task)
    assert (result["agent_id"], result["name"], result["status"]) == (str(helper), "helper", "interrupted")
    assert result["error"] == "interrupted by the user"
    assert mesh.result(other) == {"error": "interrupted by the user"}
    assert mesh.one("select status from agentmesh.tasks") == "interrupted"
