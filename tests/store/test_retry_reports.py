"""Who hears the end of a turn that a person has run again: a retried turn owes what the turn owed that it repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, batches, external, forms, person, steps
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import MODEL, Mesh, entry

pytestmark = pytest.mark.only_rows

FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MISS = {"error": "n is missing", "hint": "Give n."}


@pytest.fixture(autouse=True)
def nothing_is_broken(mesh: Mesh) -> Any:
    yield
    assert violations(mesh.conn) == []


@pytest.fixture
def child(mesh: Mesh) -> AgentId:
    """A child that owes its parent, the root, a report."""
    return child_of(mesh, mesh.root)


def child_of(mesh: Mesh, parent: AgentId, name: str = "child") -> AgentId:
    return mesh.fork(parent, name, "work", mesh.call(parent, "fork")[0])


def fails(mesh: Mesh, agent: AgentId) -> None:
    mesh.run(steps.fail_turn, mesh.begin(agent), {"error": "no answer"})


def is_stopped(mesh: Mesh, agent: AgentId) -> None:
    lease = mesh.begin(agent)
    mesh.interrupt(agent)
    mesh.run(steps.stop_turn, lease)


def retry(mesh: Mesh, agent: AgentId, text: str | None = "found") -> None:
    """Run the turn again; with a text, to its good end."""
    mesh.run(person.retry, agent)
    if text is not None:
        mesh.answer(agent, text)


def told(mesh: Mesh, agent: AgentId | None = None) -> list[str]:
    """Return the reports that an agent (the root) was ever sent."""
    query = "select body from agentmesh.mail where recipient = %s and automatic order by id"
    return mesh.column(query, agent or mesh.root)


Ends = Callable[[Mesh, AgentId], None]
either = pytest.mark.parametrize("ends", [fails, is_stopped])


# What is owed again


@either
def test_a_child_whose_failure_its_parent_was_told_reports_again(mesh: Mesh, child: AgentId, ends: Ends):
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh)[1:] == ["found"]


@either
def test_each_failure_of_a_retried_turn_is_told_and_owes_again(mesh: Mesh, child: AgentId, ends: Ends):
    ends(mesh, child)
    retry(mesh, child, None)
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh)[2:] == ["found"]
    mesh.send(None, child, "a question of a person's")
    mesh.answer(child, "for the person")
    assert told(mesh)[2:] == ["found"], "it has been told now"


def test_a_child_that_its_parent_stopped_reports_once_a_person_runs_it_again(mesh: Mesh, child: AgentId):
    lease = mesh.begin(child)
    mesh.run(agents.interrupt, child, mesh.root)
    mesh.run(steps.stop_turn, lease)
    assert told(mesh) == [], "its parent knows"
    retry(mesh, child)
    assert told(mesh) == ["found"]


def test_a_report_of_a_retried_child_wakes_its_parent(mesh: Mesh):
    parent = mesh.fork(mesh.root, "above", "work")
    child = child_of(mesh, parent)
    fails(mesh, child)
    mesh.answer(parent, "a child has failed")
    mesh.answer(parent, "I read so")
    assert mesh.status(parent) is AgentStatus.IDLE
    retry(mesh, child)
    assert mesh.status(parent) is AgentStatus.RUNNING


def test_a_message_in_the_retried_turn_is_the_report(mesh: Mesh, child: AgentId):
    fails(mesh, child)
    retry(mesh, child, None)
    mesh.begin(child)
    mesh.send(child, mesh.root, "here it is")
    mesh.answer(child, "done")
    assert told(mesh) == ["no answer"]


# What is not


@either
def test_a_turn_that_owed_nothing_owes_nothing_when_it_is_run_again(mesh: Mesh, child: AgentId, ends: Ends):
    """It had reported; then a person asked something. The same after a failure: the newer turn is the person's."""
    mesh.answer(child, "result")
    mesh.send(None, child, "a question of a person's")
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh) == ["result"]


@either
def test_nor_does_a_persons_turn_after_a_failure_that_was_told(mesh: Mesh, child: AgentId, ends: Ends):
    fails(mesh, child)
    mesh.send(None, child, "a question of a person's")
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh) == ["no answer"]


@either
def test_nor_does_the_turn_of_another_agents_mail(mesh: Mesh, child: AgentId, ends: Ends):
    other = mesh.fork(mesh.root, "other")
    fails(mesh, child)
    mesh.send(other, child, "how are you?")
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh) == ["no answer"]


@either
def test_nor_does_a_turn_that_had_sent_a_message_before_it_ended(mesh: Mesh, child: AgentId, ends: Ends):
    mesh.begin(child)
    mesh.send(child, mesh.root, "here it is")
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh) == []


@either
def test_nor_does_a_fork_of_a_persons(mesh: Mesh, ends: Ends):
    child = mesh.fork(mesh.root, "child", "work")
    ends(mesh, child)
    retry(mesh, child)
    assert told(mesh) == []


@either
def test_nor_the_root(mesh: Mesh, ends: Ends):
    ends(mesh, mesh.root)
    retry(mesh, mesh.root)
    assert mesh.column("select id from agentmesh.mail where automatic") == []


# Parents that wait, have stopped, are external or dead


@either
def test_a_parent_that_waits_again_gets_the_new_end(mesh: Mesh, child: AgentId, ends: Ends):
    ends(mesh, child)
    first = mesh.wait(mesh.root, child)
    assert first is not None
    retry(mesh, child, None)
    assert mesh.wait(mesh.root, child) is None, "it runs"
    mesh.answer(child, "found")
    assert mesh.take(mesh.root) == {
        "outcome": "complete",
        "results": [entry(child, "child", "idle", output="found")],
    }


def test_one_that_has_not_read_of_the_failure_gets_both_the_newest_first(mesh: Mesh, child: AgentId):
    fails(mesh, child)
    retry(mesh, child)
    assert mesh.wait(mesh.root, child) == {
        "outcome": "complete",
        "results": [entry(child, "child", "idle", output="found", earlier_output=["no answer"])],
    }


def test_the_new_report_wakes_a_parent_that_a_person_had_stopped_with_the_child(mesh: Mesh, child: AgentId):
    """Only the report of an agent that is stopped is held. This one was run again, by a person."""
    mesh.begin(child)
    for agent in (mesh.root, child):
        mesh.interrupt(agent)
    for agent in (mesh.root, child):
        mesh.run(steps.stop_turn, mesh.lease(agent))
    assert (mesh.status(mesh.root), mesh.unread(mesh.root)) == (AgentStatus.IDLE, ["interrupted by the user"])
    retry(mesh, child)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    mesh.begin(mesh.root)
    assert [row["text"] for kind, row in mesh.rows(mesh.root) if kind == "mail"] == ["interrupted by the user", "found"]


def test_if_both_are_run_again_each_goes_its_way(mesh: Mesh, child: AgentId):
    mesh.begin(child)
    for agent in (mesh.root, child):
        mesh.interrupt(agent)
    for agent in (mesh.root, child):
        mesh.run(steps.stop_turn, mesh.lease(agent))
    retry(mesh, mesh.root, None)
    mesh.begin(mesh.root)
    retry(mesh, child)
    assert mesh.answer(mesh.root, "its part") is AgentStatus.RUNNING, "the report begins its next turn"
    assert told(mesh) == ["interrupted by the user", "found"]


def test_the_mailbox_of_an_external_parent_gets_it(mesh: Mesh):
    guest = mesh.run(external.guest, mesh.session, "guest")
    child = mesh.fork(guest, "child")
    mesh.send(guest, child, "work")
    fails(mesh, child)
    retry(mesh, child)
    assert mesh.unread(guest) == ["no answer", "found"]
    assert mesh.status(guest) is AgentStatus.IDLE


def test_nobody_hears_of_a_child_that_dies_with_its_parent(mesh: Mesh):
    parent = mesh.fork(mesh.root, "above", "work")
    child = child_of(mesh, parent)
    fails(mesh, child)
    retry(mesh, child, None)
    before = told(mesh, parent)
    mesh.kill(parent)
    assert told(mesh, parent) == before == ["no answer"]


# Tasks, batches and forms


@either
@pytest.mark.parametrize("background", [False, True])
def test_a_tasks_child_reports_by_mail_because_the_call_has_its_result(mesh: Mesh, ends: Ends, background: bool):
    call = mesh.call(mesh.root, "task")[0]
    helper = mesh.task(mesh.root, call=call, background=background)
    ends(mesh, helper)
    result, before = mesh.result(call), told(mesh)
    retry(mesh, helper)
    assert told(mesh) == [*before, "found"]
    assert mesh.result(call) == result
    assert not mesh.one("select unseen from agentmesh.agents where id = %s", helper), "it works for its parent"


def test_the_next_task_of_that_child_gives_its_result_to_its_own_call(mesh: Mesh):
    helper = mesh.task(mesh.root)
    fails(mesh, helper)
    retry(mesh, helper)
    again = mesh.call(mesh.root, "task")[0]
    mesh.run(steps.task, again, {"agent_id": str(helper), "prompt": "more", "description": "", "max_steps": 5})
    mesh.answer(helper, "more found")
    assert mesh.result(again)["result"] == "more found"
    assert told(mesh) == ["found"]


def test_a_typed_task_that_missed_its_form_is_answered_in_words(mesh: Mesh):
    helper = mesh.task(mesh.root, schema=FORM)
    for _ in range(3):
        mesh.run(steps.report, mesh.call(helper, "report")[0], None, MISS)
    assert mesh.one("select status from agentmesh.tasks") == "failed"
    assert told(mesh) == []
    retry(mesh, helper, "n is 3")
    assert told(mesh) == ["n is 3"]


def test_so_is_one_that_never_called_report(mesh: Mesh):
    helper = mesh.task(mesh.root, schema=FORM)
    for _ in range(3):
        mesh.answer(helper, "it is 3")
    assert mesh.one("select status from agentmesh.tasks") == "failed"
    retry(mesh, helper, "n is 3")
    assert told(mesh) == ["n is 3"]


def test_an_item_of_a_batch_reports_by_mail_while_the_batch_goes_on(mesh: Mesh):
    call = mesh.call(mesh.root, "task")[0]
    spec: dict[str, Any] = {
        "name": "count",
        "prompt": "{item}",
        "type": "general-purpose",
        "model": MODEL,
        "system_prompt": "x",
    }
    spec |= {"tools": [], "permissions": [], "max_steps": 5, "room": 65536, "description": "", "items": ["a", "b"]}
    mesh.run(batches.batch, call, spec, None)
    first, second = mesh.column("select child from agentmesh.v_batch_items order by place")
    fails(mesh, first)
    retry(mesh, first)
    assert told(mesh) == ["found"]
    mesh.answer(second, "two")
    result = mesh.result(call)
    assert [(each["status"], each.get("result")) for each in result["results"]] == [
        ("failed", ""),
        ("completed", "two"),
    ]


def fork_with_form(mesh: Mesh) -> AgentId:
    return mesh.run(agents.fork, mesh.root, "counter", "count", shape=Shape(schema=FORM))


@either
def test_a_fork_still_owes_the_form_after_a_turn_that_ended_otherwise(mesh: Mesh, ends: Ends):
    child = fork_with_form(mesh)
    ends(mesh, child)
    retry(mesh, child, None)
    mesh.run(steps.report, mesh.call(child, "report")[0], {"n": 3})
    assert told(mesh)[1:] == ['{"n": 3}']


@pytest.mark.parametrize("misses", ["by calls", "by words"])
def test_a_fork_that_missed_its_form_owes_it_again(mesh: Mesh, misses: str):
    child = fork_with_form(mesh)
    for _ in range(3):
        if misses == "by calls":
            mesh.run(steps.report, mesh.call(child, "report")[0], None, MISS)
        else:
            mesh.answer(child, "it is 3")
    assert [body[:15] for body in told(mesh)] == ["no valid report"]
    retry(mesh, child, "it is 3")
    assert mesh.status(child) is AgentStatus.RUNNING, "words are no report"
    mesh.run(steps.report, mesh.call(child, "report")[0], {"n": 3})
    assert told(mesh)[1:] == ['{"n": 3}']
    found = mesh.run(forms.reported, child)
    assert found is not None
    assert (found.status, found.result) == ("reported", {"n": 3})


def test_a_halted_child_that_is_run_again_reports_and_wakes_its_parent(mesh: Mesh):
    parent = child_of(mesh, mesh.root, "above")
    child = child_of(mesh, parent)
    mesh.begin(child)
    shape = Shape(schema={"type": "object"}, definition={"name": "guard", "halt": True})
    guard = mesh.run(agents.fork, parent, "guard", "look", shape=shape, report=True)
    mesh.run(steps.halt, mesh.call(guard, "report")[0], {"result": "no"})
    for agent in (child, parent):
        mesh.run(steps.stop_turn, mesh.lease(agent))
    assert mesh.status(parent) is AgentStatus.IDLE
    retry(mesh, child)
    assert told(mesh, parent)[-1] == "found"
    assert mesh.status(parent) is AgentStatus.RUNNING


def test_the_debt_outlives_the_end_of_a_compacting_turn(mesh: Mesh, child: AgentId):
    fails(mesh, child)
    mesh.conn.execute("select agentmesh.compact(%s)", [child])
    mesh.claim()
    mesh.run(steps.skip_turn, mesh.lease(child))
    retry(mesh, child)
    assert told(mesh) == ["no answer", "found"]
