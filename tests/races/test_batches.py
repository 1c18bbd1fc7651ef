"""Races around batches: the end of one item starts the next, whoever else locks meanwhile."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import Fenced
from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, batches, steps, workers
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import MODEL, Mesh

pytestmark = [pytest.mark.only_rows, pytest.mark.usefixtures("nothing_is_broken")]


@pytest.fixture
def boss(mesh: Mesh) -> AgentId:
    """The parent of a batch of four, two side by side."""
    boss = mesh.fork(mesh.root, "boss", "work")
    spec: dict[str, Any] = {
        "name": "item",
        "prompt": "{item}",
        "type": "general-purpose",
        "model": MODEL,
        "system_prompt": "x",
    }
    spec |= {"tools": [], "permissions": [], "max_steps": 5, "room": 65536, "items": list("abcd")}
    mesh.run(batches.batch, mesh.call(boss, "task")[0], spec, 2)
    return boss


def leases(mesh: Mesh) -> list[Lease]:
    """Begin a step of each item that runs."""
    running = mesh.column("select child from agentmesh.batch_items where state = 'running' order by place")
    return [mesh.begin(AgentId(child)) for child in running]


def end(conn: psycopg.Connection, lease: Lease) -> None:
    steps.finish_step(conn, lease, {"text": "done"}, [], {})


def states(mesh: Mesh) -> str:
    return "".join(mesh.column("select left(state, 1) from agentmesh.batch_items order by place"))


def test_two_items_that_end_at_once_start_one_each(mesh: Mesh, stage: Stage, boss: AgentId):
    first, second = leases(mesh)
    end(stage.holder, first)
    other = stage.meanwhile(lambda conn: end(conn, second), blocks=True)
    stage.holder.commit()
    other.result()
    assert states(mesh) == "ddrr"


def test_a_kill_of_the_parent_comes_after_the_end_of_an_item(mesh: Mesh, stage: Stage, boss: AgentId):
    first, _ = leases(mesh)
    end(stage.holder, first)
    kill = stage.meanwhile(lambda conn: agents.kill(conn, boss), blocks=True)
    stage.holder.commit()
    assert len(kill.result()) == 4, "the boss and all three items that were made"
    assert states(mesh) == "dfff"


def test_an_item_that_ends_after_the_kill_of_its_parent_starts_nothing(mesh: Mesh, stage: Stage, boss: AgentId):
    first, _ = leases(mesh)
    agents.kill(stage.holder, boss)
    late = stage.meanwhile(lambda conn: end(conn, first), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        late.result()
    assert states(mesh) == "ffff"


def test_an_interrupt_of_the_parent_stops_the_item_that_begins_meanwhile(mesh: Mesh, stage: Stage, boss: AgentId):
    first, second = leases(mesh)
    end(stage.holder, first)
    interrupt = stage.meanwhile(lambda conn: agents.interrupt(conn, boss), blocks=True)
    stage.holder.commit()
    assert interrupt.result()
    assert states(mesh) == "drff", "the worker of the second stops it"
    mesh.run(steps.stop_turn, second)
    assert states(mesh) == "dfff"


def test_an_item_that_ends_after_the_interrupt_starts_nothing(mesh: Mesh, stage: Stage, boss: AgentId):
    first, _ = leases(mesh)
    agents.interrupt(stage.holder, boss)
    late = stage.meanwhile(lambda conn: end(conn, first), blocks=True)
    stage.holder.commit()
    late.result()
    assert states(mesh) == "drff"


def test_the_tick_does_not_wait_for_the_end_of_an_item(mesh: Mesh, stage: Stage, boss: AgentId):
    first, _ = leases(mesh)
    mesh.conn.execute("update agentmesh.batches set side = 3")
    end(stage.holder, first)
    other = mesh.join()
    tick = stage.meanwhile(lambda conn: workers.tick(conn, other, {}), blocks=False)
    tick.result()
    stage.holder.commit()
    assert states(mesh) == "drrr"


def test_two_ticks_start_an_item_once(mesh: Mesh, stage: Stage, boss: AgentId):
    mesh.conn.execute("update agentmesh.batches set side = 3")
    stage.holder.execute("select agentmesh.start_queued_items()")
    tick = stage.meanwhile(lambda conn: conn.execute("select agentmesh.start_queued_items()"), blocks=False)
    tick.result()
    stage.holder.commit()
    assert states(mesh) == "rrrq"
