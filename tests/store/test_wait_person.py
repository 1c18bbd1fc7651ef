"""A person's /wait on an idle agent: durable, takes mail as rows of its own, starts no turn."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import AgentBusy
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import steps, waits
from tests.fixtures.mesh import Mesh, entry

pytestmark = pytest.mark.only_rows


def test_it_makes_the_agent_running_and_any_worker_runs_it(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.person_waits(mesh.root, a) is None
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    assert mesh.root in mesh.claim(0)
    waiting = mesh.run(waits.registered, mesh.root)
    assert waiting is not None
    assert mesh.one("select seq from agentmesh.wait where waiter = %s", mesh.root) is None
    assert waiting.targets == [a]


def test_its_result_is_a_row_no_model_sees_and_the_mail_rows_of_their_own(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.person_waits(mesh.root, a)
    mesh.send(a, mesh.root, "report")
    mesh.claim()
    result = mesh.take(mesh.root)
    assert result == {"outcome": "complete", "results": [entry(a, "a", "received", message="report")]}
    assert mesh.status(mesh.root) is AgentStatus.IDLE, "it starts no turn"
    assert [kind for kind, _ in mesh.rows(mesh.root)] == ["command", "mail"]
    assert [content["text"] for _, content in mesh.context(mesh.root)] == ["report"]


def test_it_is_refused_while_the_agent_is_busy(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    with pytest.raises(AgentBusy, match="a "):
        mesh.person_waits(a, mesh.root)


def test_over_at_once_it_changes_no_status(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    assert mesh.person_waits(mesh.root, a) == {"outcome": "complete", "results": [entry(a, "a", "idle", output="")]}
    assert mesh.status(mesh.root) is AgentStatus.IDLE


def test_its_timeout_ends_it_idle(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.person_waits(mesh.root, a)
    mesh.claim()
    result = mesh.take(mesh.root, WaitOutcome.TIMEOUT)
    assert result == {"outcome": "timeout", "results": [entry(a, "a", "running")]}
    assert mesh.status(mesh.root) is AgentStatus.IDLE


def test_mail_of_others_that_came_meanwhile_starts_a_turn(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.person_waits(mesh.root, a)
    mesh.send(b, mesh.root, "not awaited")
    mesh.send(a, mesh.root, "awaited")
    mesh.claim()
    assert mesh.take(mesh.root) is not None
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    assert mesh.unread(mesh.root) == []


def test_what_the_user_types_ends_it_and_starts_the_turn_that_answers(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.person_waits(mesh.root, a)
    mesh.send(None, mesh.root, "never mind, do this")
    mesh.claim()
    result = mesh.take(mesh.root)
    assert result is not None
    assert result["outcome"] == "user"
    assert mesh.status(mesh.root) is AgentStatus.RUNNING
    assert [(kind, content["text"]) for kind, content in mesh.context(mesh.root)] == [("user", "never mind, do this")]


def test_held_mail_of_the_user_ends_it_at_once_and_is_read(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.send(None, mesh.root, "wait")
    mesh.interrupt(mesh.root)
    assert mesh.unread(mesh.root) == ["wait"]
    result = mesh.person_waits(mesh.root, a)
    assert result is not None
    assert result["outcome"] == "user"
    assert mesh.unread(mesh.root) == []
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.person_waits(mesh.root, a) is None, "the next one waits"


def test_held_mail_of_agents_wakes_nobody_when_it_ends(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.send(b, mesh.root, "held")
    mesh.interrupt(mesh.root)
    assert mesh.person_waits(mesh.root, a) is None
    mesh.claim()
    mesh.take(mesh.root, WaitOutcome.TIMEOUT)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.unread(mesh.root) == ["held"]


def test_esc_ends_it_idle_with_what_had_arrived_also_without_a_worker(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.person_waits(mesh.root, a, b)
    mesh.send(a, mesh.root, "early")
    assert mesh.interrupt(mesh.root)
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    assert mesh.rows(mesh.root)[0][1]["result"] == {
        "outcome": "interrupted",
        "results": [entry(a, "a", "received", message="early"), entry(b, "b", "running")],
    }


def test_a_child_that_owes_a_report_can_be_made_to_wait_again_and_again(mesh: Mesh):
    child, other = mesh.fork(mesh.root, "child"), mesh.fork(mesh.root, "other", "work")
    for text in ("one", "two"):
        assert mesh.person_waits(child, mesh.root, other) is None
        mesh.send(mesh.root, child, text)
        mesh.claim()
        assert mesh.take(child, WaitOutcome.TIMEOUT) is not None
        assert mesh.status(child) is AgentStatus.IDLE
    assert mesh.one("select owes_report from agentmesh.agents where id = %s", child)
    mesh.answer(child, "both done")
    assert mesh.one("select body from agentmesh.mail where automatic") == "both done"


def test_a_stop_of_its_owner_ends_it_too(mesh: Mesh):
    child, other = mesh.fork(mesh.root, "child"), mesh.fork(mesh.root, "other", "work")
    mesh.person_waits(child, other)
    mesh.claim()
    mesh.interrupt(child)
    assert mesh.run(steps.stop_turn, mesh.lease(child)) is AgentStatus.IDLE
    assert mesh.run(waits.registered, child) is None
