"""interrupt: one turn stops, the agent goes idle, unread mail is held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentmesh.domain.errors import DeadAgent, Fenced, NotDescendant, TurnInterrupted, UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, steps
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def test_an_idle_agent_has_no_turn_to_stop(mesh: Mesh):
    assert mesh.interrupt(mesh.root) is False
    assert mesh.rows(mesh.root) == []


def test_a_queued_agent_stops_in_that_commit(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    assert mesh.interrupt(mesh.root) is True
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert [(kind, content["event"]) for kind, content in mesh.rows(mesh.root)] == [("event", "interrupted")]


def test_the_next_step_of_an_interrupted_turn_is_refused_and_its_owner_ends_it(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    assert mesh.interrupt(mesh.root) is True
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    with pytest.raises(TurnInterrupted, match="root"):
        mesh.run(steps.begin_step, lease, 0)
    assert mesh.run(steps.stop_turn, lease, {"text": "half a sen"}) is AgentStatus.IDLE
    kinds = [kind for kind, _ in mesh.rows(mesh.root)]
    assert kinds == ["user", "assistant", "event"]
    assert mesh.rows(mesh.root)[1][1] == {"text": "half a sen", "interrupted": True}


def test_open_calls_get_their_one_result(mesh: Mesh):
    done, started, open_one = mesh.call(mesh.root, "read", "bash", "send")
    mesh.finish(done, {"output": "kept"})
    mesh.run(steps.start_calls, started, [1])
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root))
    assert mesh.result(done) == {"output": "kept"}
    for call in (started, open_one):
        assert mesh.result(call) == {"error": "interrupted by the user"}
    assert mesh.run(steps.open_calls, mesh.root) == []
    assert mesh.one("select tool_calls from agentmesh.agents where id = %s", mesh.root) == 3


def test_mail_unread_by_then_wakes_nobody_and_is_shown_with_the_next(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(mesh.root)
    mesh.send(a, mesh.root, "held")
    mesh.interrupt(mesh.root)
    assert mesh.run(steps.stop_turn, mesh.lease(mesh.root)) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["held"]
    mesh.send(a, mesh.root, "newer")
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    mesh.begin(mesh.root)
    assert [content["text"] for kind, content in mesh.rows(mesh.root) if kind == "mail"] == ["held", "newer"]


@pytest.mark.parametrize("ends", ["stopped", "by itself"])
def test_mail_of_agents_that_comes_before_the_turn_has_stopped_wakes_nobody(mesh: Mesh, ends: str):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.send(a, mesh.root, "in between")
    if ends == "stopped":
        assert mesh.run(steps.stop_turn, lease) is AgentStatus.IDLE
    else:
        assert mesh.run(steps.finish_step, lease, {"text": "done"}, [], {}).status is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["in between"]
    mesh.send(a, mesh.root, "after")
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_a_persons_message_after_esc_starts_the_next_turn_with_all_mail(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(mesh.root)
    mesh.send(a, mesh.root, "before")
    mesh.interrupt(mesh.root)
    mesh.send(None, mesh.root, "of the person")
    mesh.send(a, mesh.root, "after")
    assert mesh.run(steps.stop_turn, mesh.lease(mesh.root)) is AgentStatus.RUNNING
    told = [content["text"] for kind, content in mesh.rows(mesh.root) if kind in ("mail", "user")]
    assert told[1:] == ["before", "of the person", "after"]
    mesh.run(steps.begin_step, mesh.lease(mesh.root), 0)


def test_a_turn_that_ends_by_itself_after_esc_holds_its_mail_all_the_same(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(mesh.root)
    mesh.send(a, mesh.root, "held")
    mesh.interrupt(mesh.root)
    assert mesh.run(steps.finish_step, lease, {"text": "done"}, [], {}).status is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["held"]


def test_a_late_esc_never_stops_the_next_turn(mesh: Mesh):
    mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root))
    mesh.begin(mesh.root)
    assert mesh.answer(mesh.root) is AgentStatus.IDLE


def test_esc_twice_is_esc_once(mesh: Mesh):
    mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.send(None, mesh.root, "between")
    assert mesh.interrupt(mesh.root) is True
    assert mesh.run(steps.stop_turn, mesh.lease(mesh.root)) is AgentStatus.RUNNING, "a word after the first Esc wakes"


def test_a_prompt_held_by_esc_is_read_with_the_next_prompt(mesh: Mesh):
    mesh.send(None, mesh.root, "first")
    mesh.interrupt(mesh.root)
    mesh.send(None, mesh.root, "second")
    mesh.begin(mesh.root)
    assert [content["text"] for kind, content in mesh.rows(mesh.root) if kind == "user"] == ["first", "second"]


def test_an_interrupted_agent_of_a_dead_worker_ends_by_the_next_esc_or_the_next_owner(mesh: Mesh):
    mesh.call(mesh.root, "bash")
    mesh.interrupt(mesh.root)
    mesh.conn.execute("select agentmesh.release_worker(%s)", [mesh.worker])
    assert mesh.interrupt(mesh.root) is True
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.run(steps.open_calls, mesh.root) == []


def test_the_dead_and_the_unknown_are_refused(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.kill(a)
    with pytest.raises(DeadAgent, match="a "):
        mesh.interrupt(a)
    with pytest.raises(UnknownAgent):
        mesh.interrupt(unknown())


def test_a_waiter_told_of_an_interrupted_child_sees_why_it_is_idle(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.interrupt(a)
    assert mesh.take(mesh.root) is None, "it runs until its owner stops it"
    mesh.run(steps.stop_turn, mesh.lease(a))
    result = mesh.take(mesh.root)
    assert result is not None
    assert result["results"][0]["error"] == "interrupted by the user"


# Of several agents: what a stopped child reports does not start its stopped parent


@pytest.fixture
def child(mesh: Mesh) -> AgentId:
    """A child that owes its parent, the root, a report; a worker runs it."""
    made = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork")[0])
    mesh.begin(made)
    return made


def stop(mesh: Mesh, *stopping: AgentId) -> None:
    """Let their worker notice the interrupts."""
    for agent in stopping:
        mesh.run(steps.stop_turn, mesh.lease(agent))


def test_the_report_of_a_stopped_child_wakes_no_stopped_parent(mesh: Mesh, child: AgentId):
    mesh.interrupt(mesh.root)
    mesh.interrupt(child)
    stop(mesh, mesh.root, child)
    assert (mesh.status(mesh.root), mesh.status(child)) == (AgentStatus.IDLE, AgentStatus.IDLE)
    assert mesh.unread(mesh.root) == ["interrupted by the user"]
    mesh.send(None, mesh.root, "go on")
    mesh.begin(mesh.root)
    assert [kind for kind, _ in mesh.rows(mesh.root)][-2:] == ["mail", "user"]


def test_nor_does_it_if_the_child_ends_before_the_parent(mesh: Mesh, child: AgentId):
    mesh.interrupt(mesh.root)
    mesh.interrupt(child)
    stop(mesh, child, mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["interrupted by the user"]


def test_nor_does_it_if_the_child_was_interrupted_first(mesh: Mesh, child: AgentId):
    mesh.interrupt(child)
    mesh.interrupt(mesh.root)
    stop(mesh, mesh.root, child)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["interrupted by the user"]


def test_nor_does_it_if_the_child_answers_in_that_instant(mesh: Mesh, child: AgentId):
    mesh.interrupt(mesh.root)
    mesh.interrupt(child)
    stop(mesh, mesh.root)
    assert mesh.run(steps.finish_step, mesh.lease(child), {"text": "done"}, [], {}).status is AgentStatus.IDLE
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["done"]


def test_nor_does_the_result_of_a_task_in_the_background(mesh: Mesh):
    helper = mesh.task(mesh.root, background=True)
    mesh.begin(helper)
    mesh.interrupt(mesh.root)
    mesh.interrupt(helper)
    stop(mesh, mesh.root, helper)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert len(mesh.unread(mesh.root)) == 1


def test_nor_is_a_parent_woken_that_was_interrupted_while_idle(mesh: Mesh, child: AgentId):
    mesh.finish(mesh.call(mesh.root, "x")[0])
    mesh.answer(mesh.root)
    assert mesh.interrupt(mesh.root) is False
    mesh.interrupt(child)
    stop(mesh, child)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["interrupted by the user"]


def test_nor_a_parent_inside_a_wait_for_the_child(mesh: Mesh, child: AgentId):
    assert mesh.wait(mesh.root, child) is None
    mesh.interrupt(mesh.root)
    mesh.interrupt(child)
    stop(mesh, child, mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == [], "the wait took it"


def test_a_parent_hears_of_the_child_if_only_that_was_interrupted(mesh: Mesh, child: AgentId):
    mesh.answer(mesh.root)
    mesh.interrupt(child)
    stop(mesh, child)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_a_turn_that_began_since_hears_of_it_too(mesh: Mesh, child: AgentId):
    mesh.interrupt(mesh.root)
    mesh.interrupt(child)
    stop(mesh, mesh.root)
    mesh.send(None, mesh.root, "go on")
    mesh.answer(mesh.root)
    stop(mesh, child)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_what_a_child_reports_that_goes_on_wakes_a_stopped_parent(mesh: Mesh, child: AgentId):
    mesh.interrupt(mesh.root)
    stop(mesh, mesh.root)
    mesh.answer(child)
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


@pytest.mark.parametrize("before", [True, False])
def test_a_held_report_holds_up_no_message(mesh: Mesh, child: AgentId, before: bool):
    mesh.interrupt(mesh.root)
    mesh.interrupt(child)
    if before:
        mesh.send(None, mesh.root, "listen")
    stop(mesh, child)
    if not before:
        mesh.send(None, mesh.root, "listen")
    assert mesh.run(steps.stop_turn, mesh.lease(mesh.root)) is AgentStatus.RUNNING
    assert mesh.unread(mesh.root) == []


# By an agent


def test_an_agent_interrupts_what_is_below_it_and_hears_no_report(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    grandchild = mesh.fork(child, "deep", "work")
    (call,) = mesh.call(mesh.root, "interrupt")
    assert mesh.run(agents.interrupt, grandchild, mesh.root, call) is True
    mesh.run(steps.stop_turn, mesh.lease(grandchild))
    assert mesh.status(grandchild) is AgentStatus.IDLE
    assert mesh.rows(grandchild)[-1] == ("event", {"event": "interrupted", "text": "interrupted by root"})
    assert mesh.result(call) == {"agent_id": str(grandchild), "name": "deep", "interrupted": True}
    (call,) = mesh.call(mesh.root, "interrupt")
    assert mesh.run(agents.interrupt, child, mesh.root, call) is True
    mesh.run(steps.stop_turn, mesh.lease(child))
    assert mesh.one("select count(*) from agentmesh.mail where automatic and recipient = %s", mesh.root) == 0, (
        "it knows"
    )
    (call,) = mesh.call(mesh.root, "interrupt")
    assert mesh.run(agents.interrupt, child, mesh.root, call) is False
    assert mesh.result(call)["interrupted"] is False
    mesh.send(mesh.root, child, "do this instead")
    assert mesh.status(child) is AgentStatus.RUNNING


def test_a_later_interrupt_by_a_person_is_the_persons(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    mesh.run(agents.interrupt, child, mesh.root)
    mesh.send(mesh.root, child, "again")
    assert mesh.interrupt(child)
    assert mesh.rows(child)[-1][1]["text"] == "interrupted by the user"


def test_an_agent_interrupts_nobody_else(mesh: Mesh):
    child, sibling = mesh.fork(mesh.root, "child", "work"), mesh.fork(mesh.root, "sibling", "work")
    elsewhere = mesh.fork(mesh.new_session(), "stranger", "work")
    for target in (child, sibling, mesh.root, elsewhere):
        (call,) = mesh.call(child, "interrupt")
        with pytest.raises(NotDescendant):
            mesh.run(agents.interrupt, target, child, call)
        mesh.finish(call)
    assert mesh.status(sibling) is AgentStatus.RUNNING
    mesh.run(agents.kill, sibling)
    (call,) = mesh.call(mesh.root, "interrupt")
    with pytest.raises(DeadAgent):
        mesh.run(agents.interrupt, sibling, mesh.root, call)


def test_a_worker_that_lost_the_caller_interrupts_nobody(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    (call,) = mesh.call(mesh.root, "interrupt")
    mesh.kill(child)
    other = mesh.fork(mesh.root, "other", "work")
    with pytest.raises(Fenced):
        mesh.run(agents.interrupt, other, mesh.root, replace(call, epoch=call.epoch + 1))
    assert mesh.status(other) is AgentStatus.RUNNING
