"""An answer with a correction: one commit, no end of the turn, and stored once."""

from __future__ import annotations

from agentmesh.domain.states import AgentStatus
from agentmesh.store import steps, transcript, travel
from tests.fixtures.mesh import Mesh

CORRECTED = {"text": "{", "correction": {"reason": "call", "text": "Call the tool now."}}
USAGE = {"input_tokens": 10, "output_tokens": 2}


def rows(mesh: Mesh) -> list[tuple[str, str | None]]:
    own = mesh.run(transcript.own, mesh.root)
    return [(row.kind.value, row.content.get("correction") and row.content["text"]) for row in own]


def test_the_answer_and_what_is_said_of_it_are_one_commit_and_the_turn_goes_on(mesh: Mesh):
    done = mesh.run(steps.finish_step, mesh.begin(mesh.root), CORRECTED, [], USAGE)
    assert (done.status, done.allowance) == (AgentStatus.RUNNING, None)
    assert rows(mesh) == [("user", None), ("assistant", "{"), ("user", "Call the tool now.")]
    last = mesh.run(transcript.own, mesh.root)[-1]
    assert last.content == {"text": "Call the tool now.", "correction": "call"}
    assert mesh.one("select count(*) from agentmesh.model_calls where agent_id = %s", mesh.root) == 1
    assert mesh.answer(mesh.root) is AgentStatus.IDLE


def test_a_repeated_commit_stores_it_once(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    first = mesh.run(steps.finish_step, lease, CORRECTED, [], USAGE, after=1)
    again = mesh.run(steps.finish_step, lease, CORRECTED, [], USAGE, after=1)
    assert (again.seq, again.status) == (first.seq, AgentStatus.RUNNING)
    assert len(rows(mesh)) == 3


def test_a_correction_is_no_place_to_go_back_to(mesh: Mesh):
    mesh.run(steps.finish_step, mesh.begin(mesh.root), CORRECTED, [], USAGE)
    places = mesh.run(travel.points, mesh.root, 10)
    assert [place.text for place in places] == ["{", "go on"]
