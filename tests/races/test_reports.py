"""Reports of a fixed form against what happens at the same time: who comes first decides."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import Fenced
from agentmesh.domain.ids import AgentId
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import agents, forms, mailbox, steps, waits
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh

pytestmark = [pytest.mark.only_rows, pytest.mark.usefixtures("nothing_is_broken")]

FORM = Shape(schema={"type": "object"})


@pytest.fixture
def child(mesh: Mesh) -> AgentId:
    return mesh.run(agents.fork, mesh.root, "counter", "count", shape=FORM)


@pytest.fixture
def call(mesh: Mesh, child: AgentId) -> Lease:
    return mesh.call(child, "report")[0]


def state(mesh: Mesh, child: AgentId) -> str:
    found = mesh.run(forms.reported, child)
    assert found is not None
    return found.status


def test_more_work_in_the_instant_of_a_report_owes_the_next_one(mesh: Mesh, stage: Stage, child: AgentId, call: Lease):
    mailbox.send(stage.holder, mesh.root, child, "and the folders?")
    report = stage.meanwhile(lambda conn: steps.report(conn, call, {"n": 1}), blocks=True)
    stage.holder.commit()
    assert report.result() is AgentStatus.RUNNING
    assert state(mesh, child) == "owed"
    assert mesh.unread(mesh.root) == ['{"n": 1}']


def test_more_work_in_the_instant_after_wakes_it_to_owe_the_next(mesh: Mesh, stage: Stage, child: AgentId, call: Lease):
    steps.report(stage.holder, call, {"n": 1})
    send = stage.meanwhile(lambda conn: mailbox.send(conn, mesh.root, child, "and the folders?"), blocks=True)
    stage.holder.commit()
    send.result()
    assert mesh.status(child) is AgentStatus.RUNNING
    assert state(mesh, child) == "reported"
    mesh.begin(child)
    assert state(mesh, child) == "owed"


def test_a_kill_that_comes_first_leaves_no_report(mesh: Mesh, stage: Stage, child: AgentId, call: Lease):
    agents.kill(stage.holder, child)
    report = stage.meanwhile(lambda conn: steps.report(conn, call, {"n": 1}), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        report.result()
    assert mesh.one("select status from agentmesh.v_forms") == "killed"
    assert mesh.unread(mesh.root) == []


def test_a_report_that_comes_before_the_kill_is_kept(mesh: Mesh, stage: Stage, child: AgentId, call: Lease):
    steps.report(stage.holder, call, {"n": 1})
    kill = stage.meanwhile(lambda conn: agents.kill(conn, child), blocks=True)
    stage.holder.commit()
    assert [ref.id for ref in kill.result()] == [child]
    assert mesh.one("select status from agentmesh.v_forms") == "reported"
    assert mesh.unread(mesh.root) == ['{"n": 1}']


def test_a_wait_that_begins_meanwhile_gets_the_report(mesh: Mesh, stage: Stage, child: AgentId, call: Lease):
    wait_call = mesh.call(mesh.root, "wait")[0]
    steps.report(stage.holder, call, {"n": 1})
    begun = stage.meanwhile(
        lambda conn: waits.wait_begin(conn, mesh.root, mesh.targets(child), 60, wait_call), blocks=True
    )
    stage.holder.commit()
    begun.result()
    result = mesh.result(wait_call)
    assert result is not None
    assert (result["outcome"], result["results"][0]["output"]) == (WaitOutcome.COMPLETE, '{"n": 1}')
