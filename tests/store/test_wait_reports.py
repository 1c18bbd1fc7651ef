"""Automatic reports, and how wait shows and takes them."""

from __future__ import annotations

import pytest

from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, steps
from tests.fixtures.mesh import Mesh, entry

pytestmark = pytest.mark.only_rows


def child_of_root(mesh: Mesh, prompt: str = "work"):
    """Fork a child by the root's own tool, so that it owes the root a report."""
    call = mesh.call(mesh.root, "fork")[0]
    return mesh.fork(mesh.root, "child", prompt, call)


def reports(mesh: Mesh, to=None) -> list[tuple[str, bool]]:
    rows = mesh.conn.execute(
        "select body, failed from agentmesh.mail where automatic and recipient = %s order by id", [to or mesh.root]
    )
    return rows.fetchall()


def test_a_child_that_sent_nothing_reports_its_output_in_the_commit_that_ends_its_turn(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "what I found")
    assert reports(mesh) == [("what I found", False)]
    mail, ended = mesh.conn.execute(
        "select m.xmin, t.xmin from agentmesh.mail m, agentmesh.transcript t"
        " where m.automatic and t.agent_id = %s and t.kind = 'assistant'",
        [child],
    ).fetchone() or (0, 1)
    assert mail == ended


def test_a_child_that_sent_anything_since_its_task_reports_nothing(mesh: Mesh):
    child = child_of_root(mesh)
    other = mesh.fork(mesh.root, "other")
    mesh.begin(child)
    mesh.send(child, other, "hello brother")
    mesh.answer(child, "done")
    assert reports(mesh) == []


def test_new_work_from_the_parent_makes_it_owe_again(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.begin(child)
    mesh.send(child, mesh.root, "first report")
    mesh.answer(child)
    mesh.send(mesh.root, child, "more")
    mesh.answer(child, "second answer")
    assert reports(mesh) == [("second answer", False)]


def test_a_child_that_the_user_forked_owes_its_parent_nothing(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    mesh.answer(child, "for the user")
    assert reports(mesh) == []


def test_work_from_others_owes_the_parent_nothing(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    mesh.send(a, b, "do this")
    mesh.answer(b, "did it")
    assert reports(mesh) == []


def test_it_owes_one_report_not_one_per_turn(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "report")
    mesh.send(None, child, "a question from a person")
    mesh.answer(child, "an answer to a person")
    assert reports(mesh) == [("report", False)]


def test_mail_taken_by_a_wait_owes_a_report_too(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "from the user")
    mesh.begin(mesh.root)
    call = mesh.call(child, "wait")[0]
    mesh.send(mesh.root, child, "please do")
    assert mesh.wait(child, mesh.root, lease=call) is not None
    mesh.answer(child, "did")
    assert reports(mesh) == [("did", False)]


def test_a_failed_turn_is_reported_as_failed(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.run(steps.fail_turn, mesh.begin(child), {"error": "the model server said 500"})
    assert reports(mesh) == [("the model server said 500", True)]
    assert mesh.wait(mesh.root, child) == {
        "outcome": "complete",
        "results": [entry(child, "child", "idle", error="the model server said 500")],
    }


def test_an_interrupted_turn_is_reported_as_such(mesh: Mesh):
    child = child_of_root(mesh)
    lease = mesh.begin(child)
    mesh.interrupt(child)
    mesh.run(steps.stop_turn, lease, {"text": "half a sent"})
    assert reports(mesh) == [("interrupted by the user", True)]


def test_a_killed_child_reports_nothing(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.begin(child)
    mesh.kill(child)
    assert reports(mesh) == []


def test_a_report_wakes_an_idle_parent(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    child = mesh.fork(a, "child", "work", mesh.call(a, "fork")[0])
    mesh.interrupt(a)
    mesh.run(steps.stop_turn, mesh.lease(a))
    assert mesh.status(a) is AgentStatus.IDLE
    mesh.answer(child, "report")
    assert mesh.status(a) is AgentStatus.RUNNING


def test_wait_takes_a_report_as_idle_with_output_never_as_received(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "what I found")
    assert mesh.wait(mesh.root, child) == {
        "outcome": "complete",
        "results": [entry(child, "child", "idle", output="what I found")],
    }
    assert mesh.unread(mesh.root) == []


def test_an_older_report_of_a_child_that_runs_again_does_not_end_the_wait(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "old")
    mesh.send(mesh.root, child, "again")
    assert mesh.wait(mesh.root, child) is None
    assert mesh.take(mesh.root) is None
    assert mesh.unread(mesh.root) == ["old"]
    mesh.answer(child, "new")
    assert mesh.take(mesh.root) == {
        "outcome": "complete",
        "results": [entry(child, "child", "idle", output="new", earlier_output=["old"])],
    }


def test_a_report_beside_a_message_is_earlier_output(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "old")
    mesh.send(mesh.root, child, "again")
    mesh.begin(child)
    mesh.send(child, mesh.root, "my message")
    assert mesh.wait(mesh.root, child) == {
        "outcome": "complete",
        "results": [entry(child, "child", "received", message="my message", earlier_output=["old"])],
    }
    assert mesh.unread(mesh.root) == []


def test_a_dead_child_whose_report_lies_there_shows_it(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "what I found")
    mesh.kill(child)
    assert mesh.wait(mesh.root, child) == {
        "outcome": "complete",
        "results": [entry(child, "child", "dead", output="what I found")],
    }


def test_a_running_child_is_running_at_the_timeout_and_its_older_report_stays(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "old")
    mesh.send(mesh.root, child, "again")
    assert mesh.wait(mesh.root, child, timeout=0) == {
        "outcome": "timeout",
        "results": [entry(child, "child", "running")],
    }
    assert mesh.unread(mesh.root) == ["old"]


def test_a_wait_for_anyone_takes_a_report_as_idle_with_output(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "what I found")
    assert mesh.wait(mesh.root) == {
        "outcome": "complete",
        "results": [entry(child, "child", "idle", output="what I found")],
    }


def test_a_child_that_ends_with_unread_mail_of_its_parent_reports_for_the_turn_that_ended(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.begin(child)
    mesh.send(mesh.root, child, "also this")
    assert mesh.answer(child, "first") is AgentStatus.RUNNING
    assert reports(mesh) == [("first", False)]
    assert mesh.answer(child, "second") is AgentStatus.IDLE
    assert reports(mesh) == [("first", False), ("second", False)]


def test_a_report_larger_than_a_mail_is_cut_in_the_middle(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "begin" + "ä" * 200_000 + "end")
    ((body, _),) = reports(mesh)
    assert len(body.encode()) <= 262144
    assert body.startswith("begin")
    assert body.endswith("end")
    assert "cut" in body


def test_a_turn_with_no_text_reports_the_empty_text(mesh: Mesh):
    child = child_of_root(mesh)
    mesh.answer(child, "")
    assert reports(mesh) == [("", False)]
    assert mesh.wait(mesh.root, child) == {"outcome": "complete", "results": [entry(child, "child", "idle", output="")]}


def test_a_turn_skipped_keeps_what_is_owed(mesh: Mesh):
    child = child_of_root(mesh)
    lease = mesh.begin(child)
    assert mesh.run(steps.skip_turn, lease) is AgentStatus.IDLE
    assert mesh.one("select owes_report from agentmesh.agents where id = %s", child)
    mesh.send(None, child, "go")
    mesh.answer(child, "now")
    assert reports(mesh) == [("now", False)]


def test_last_output_is_what_the_last_turn_ended_with(mesh: Mesh):
    child = child_of_root(mesh)
    assert mesh.run(agents.last_output, child) == ("", None)
    mesh.answer(child, "text")
    assert mesh.run(agents.last_output, child) == ("text", None)
    mesh.run(steps.fail_turn, mesh.begin(child), {"error": "broken"})
    assert mesh.run(agents.last_output, child) == ("", "broken")
