"""Urgent mail is read in the middle of a turn, and puts off calls that have not started."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import CallClosed, UrgentMailFirst
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.timers import When
from agentmesh.store import agents, batches, steps, timers
from tests.fixtures.mesh import MODEL, Mesh

pytestmark = pytest.mark.only_rows


def shown(mesh: Mesh, agent: AgentId) -> list[str]:
    """Return what the agent reads at its next step."""
    lease = mesh.lease(agent)
    last = mesh.one("select max(seq) from agentmesh.transcript where agent_id = %s", agent)
    return [row.content["text"] for row in mesh.run(steps.begin_step, lease, last).rows]


def test_urgent_mail_is_read_at_the_next_step_and_other_mail_is_not(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b")
    mesh.begin(a)
    mesh.send(b, a, "ordinary")
    mesh.send(mesh.root, a, "urgent", urgent=True)
    assert shown(mesh, a) == ["urgent"]
    assert shown(mesh, a) == []
    assert mesh.answer(a) is AgentStatus.RUNNING, "the other mail begins the next turn"
    assert mesh.rows(a)[-1][1]["text"] == "ordinary"


def test_what_its_sender_sent_before_is_read_with_it_and_in_order(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b")
    mesh.begin(a)
    mesh.send(b, a, "first")
    mesh.send(b, a, "second", urgent=True)
    mesh.send(b, a, "third")
    assert shown(mesh, a) == ["first", "second"]


def test_a_call_with_effects_is_not_started_until_it_is_read(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    write, other = mesh.call(a, "bash", "bash")
    mesh.run(steps.start_calls, write, [0])
    mesh.send(mesh.root, a, "stop", urgent=True)
    with pytest.raises(UrgentMailFirst) as refused:
        mesh.run(steps.start_calls, other, [1])
    assert refused.value.message == "not run: urgent mail came first"
    assert mesh.column("select status from agentmesh.tool_calls where agent_id = %s order by ordinal", a) == [
        "started",
        "open",
    ]
    mesh.finish(write)
    mesh.finish(other)
    assert shown(mesh, a) == ["stop"]


@pytest.mark.parametrize("verb", ["send", "fork", "kill", "interrupt", "send_later"])
def test_a_verb_is_put_off_and_changes_nothing(mesh: Mesh, verb: str):
    a = mesh.fork(mesh.root, "a", "work")
    b = mesh.fork(a, "b")
    (call,) = mesh.call(a, verb)
    mesh.send(mesh.root, a, "stop", urgent=True)
    deeds = {
        "send": lambda: mesh.send(a, b, lease=call),
        "fork": lambda: mesh.run(agents.fork, a, "c", "go", lease=call),
        "kill": lambda: mesh.kill(b, a, call),
        "interrupt": lambda: mesh.run(agents.interrupt, b, a, call),
        "send_later": lambda: mesh.run(timers.send_later, a, b, "x", When(after=5), call),
    }
    with pytest.raises(UrgentMailFirst):
        deeds[verb]()
    assert mesh.status(b) is AgentStatus.IDLE
    mesh.finish(call)
    with pytest.raises(CallClosed):
        deeds[verb]()


def test_a_wait_takes_the_urgent_mail_that_it_is_for_and_is_put_off_by_any_other(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    first, second = mesh.call(a, "wait", "wait")
    mesh.send(b, a, "from b", urgent=True)
    taken = mesh.wait(a, b, lease=first)
    assert taken is not None
    assert taken["results"][0]["message"] == "from b"
    mesh.send(mesh.root, a, "stop", urgent=True)
    with pytest.raises(UrgentMailFirst):
        mesh.wait(a, b, lease=second)
    assert mesh.one("select count(*) from agentmesh.wait") == 0


def test_the_user_can_be_urgent_too_and_a_key_keeps_the_first(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    (call,) = mesh.call(a, "bash")
    mail = mesh.send(None, a, "stop", key="k", urgent=True)
    assert mesh.send(None, a, "stop", key="k") == mail
    assert mesh.one("select urgent from agentmesh.v_mail where id = %s", mail)
    with pytest.raises(UrgentMailFirst):
        mesh.run(steps.start_calls, call, [0])


def test_urgent_mail_that_was_taken_back_puts_off_nothing(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    (call,) = mesh.call(a, "bash")
    mail = mesh.send(None, a, "stop", urgent=True)
    mesh.conn.execute("select agentmesh.take_back(%s)", [mail])
    mesh.run(steps.start_calls, call, [0])


def test_an_interrupted_turn_reads_no_urgent_mail(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    mesh.send(mesh.root, a, "stop", urgent=True)
    mesh.interrupt(a)
    assert mesh.one("select read_at from agentmesh.mail where body = 'stop'") is None


def test_a_task_whose_answer_was_lost_is_not_refused_for_urgent_mail_that_came_since(mesh: Mesh):
    (call,) = mesh.call(mesh.root, "task")
    given = mesh.task(mesh.root, call=call)
    mesh.send(None, mesh.root, "stop", urgent=True)
    assert mesh.task(mesh.root, call=call) == given
    (late,) = mesh.call(mesh.fork(mesh.root, "a", "work"), "task")
    mesh.send(None, late.agent_id, "stop", urgent=True)
    with pytest.raises(UrgentMailFirst):
        mesh.task(late.agent_id, call=late)


def test_nor_is_a_batch(mesh: Mesh):
    spec = {"name": "item", "prompt": "{item}", "type": "general-purpose", "model": MODEL, "system_prompt": "x"}
    whole = {**spec, "tools": [], "permissions": [], "max_steps": 5, "room": 65536, "items": ["a", "b"]}
    (call,) = mesh.call(mesh.root, "task")
    running = mesh.run(batches.batch, call, whole, 1)
    mesh.send(None, mesh.root, "stop", urgent=True)
    assert mesh.run(batches.batch, call, whole, 1) == running
    assert mesh.one("select count(*) from agentmesh.batches") == 1
