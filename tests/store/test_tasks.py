"""What screens and logs read of tasks."""

from __future__ import annotations

from agentmesh.store import steps, tasks


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
