"""How a turn ended is in the agent's row, and whether a person has seen it."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import AgentView
from agentmesh.store import agents, board, person, steps
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def ended(mesh: Mesh, agent: AgentId) -> tuple[str, bool]:
    row = mesh.conn.execute("select ended_as, unseen from agentmesh.agents where id = %s", [agent]).fetchone()
    assert row is not None
    return row


def finish(mesh: Mesh, agent: AgentId, text: str = "So it is.") -> None:
    mesh.run(steps.finish_step, mesh.begin(agent), {"text": text}, [], {})


def test_an_answer_to_a_person_is_unseen_until_somebody_looks(mesh: Mesh):
    mesh.send(None, mesh.root, "Do it.")
    finish(mesh, mesh.root)
    assert ended(mesh, mesh.root) == ("done", True)
    assert mesh.run(person.see, mesh.root) is True
    assert mesh.run(person.see, mesh.root) is False
    assert ended(mesh, mesh.root) == ("done", False)


def test_a_child_that_its_parent_asked_reports_to_the_parent_and_a_person_need_not_look(mesh: Mesh):
    (call,) = mesh.call(mesh.root, "fork")
    asked = mesh.fork(mesh.root, "asked", "work", call)
    finish(mesh, asked)
    assert ended(mesh, asked) == ("done", False)
    mesh.send(None, asked, "And now for me.")
    finish(mesh, asked)
    assert ended(mesh, asked) == ("done", True)


@pytest.mark.parametrize(("kind", "how"), [("model", "failed"), ("limit", "out of budget")])
def test_an_error_says_which(mesh: Mesh, kind: str, how: str):
    child = mesh.fork(mesh.root, "child", "work")
    mesh.run(steps.fail_turn, mesh.begin(child), {"kind": kind, "error": "x"}, None)
    assert ended(mesh, child) == (how, True)
    view = next(one for one in agents_of(mesh) if one.id == child)
    assert view.activity == how


def test_who_interrupts_has_seen_it(mesh: Mesh):
    mesh.send(None, mesh.root, "Do it.")
    lease = mesh.begin(mesh.root)
    mesh.run(agents.interrupt, mesh.root)
    mesh.run(steps.stop_turn, lease)
    assert ended(mesh, mesh.root) == ("interrupted", False)


def test_a_new_turn_is_not_unseen_while_it_runs(mesh: Mesh):
    mesh.send(None, mesh.root, "Do it.")
    finish(mesh, mesh.root)
    mesh.send(None, mesh.root, "And this.")
    assert not next(one for one in agents_of(mesh) if one.id == mesh.root).unseen


def test_seeing_an_agent_that_there_is_not_does_nothing(mesh: Mesh):
    assert mesh.run(person.see, AgentId(mesh.session)) is False


@pytest.mark.parametrize(
    "values",
    ["ended_as = 'well'", "ended_as = null", "ended_seq = null", "unseen = true, ended_as = null, ended_seq = null"],
)
def test_illegal_ends_are_refused(mesh: Mesh, values: str):
    child = mesh.fork(mesh.root, "child", "work")
    finish(mesh, child)
    with pytest.raises(psycopg.errors.CheckViolation):
        mesh.conn.execute(f"update agentmesh.agents set {values} where id = %s", [child])


def test_a_large_session_shows_who_failed_and_who_is_done_wherever_they_stand(
    mesh: Mesh, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(board, "SOME", 2)
    monkeypatch.setattr(board, "_NEAR", 2)
    children = [mesh.fork(mesh.root, f"c{n}", None) for n in range(9)]
    failed, done = children[4], children[6]
    for child in (failed, done):
        mesh.send(None, child, "x")
    mesh.run(steps.fail_turn, mesh.begin(failed), {"kind": "model", "error": "x"}, None)
    finish(mesh, done)
    shown = {one.view.id for one in mesh.run(board.agents, mesh.session)}
    assert {failed, done} <= shown
    assert len(shown) < 9


def test_details_are_the_last_words_the_age_of_the_state_and_the_last_calls_tokens(mesh: Mesh):
    mesh.send(None, mesh.root, "Do it.")
    usage = {"input_tokens": 1000, "output_tokens": 50, "cost_usd": 0.5}
    mesh.run(steps.finish_step, mesh.begin(mesh.root), {"text": "One.\nTwo."}, [], usage)
    (one,) = mesh.run(board.details, [mesh.root])
    assert (one.said, one.model_calls, one.context_tokens) == ("One.\nTwo.", 1, 1050)
    assert 0 <= one.since < 60
    (ran,) = mesh.run(board.ran, [mesh.root], 600)
    assert 0 <= ran.ended <= ran.began


def test_every_open_session_has_its_root_on_the_board_of_all(mesh: Mesh):
    mesh.send(None, mesh.root, "Do it.")
    finish(mesh, mesh.root)
    (one,) = mesh.run(board.everywhere)
    assert (one.view.id, one.view.unseen, one.asks) == (mesh.root, True, False)


def agents_of(mesh: Mesh) -> list[AgentView]:
    return list(mesh.run(agents.view, mesh.session))
