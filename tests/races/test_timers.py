"""Races around timers of cron expressions, whose next time a worker computes outside the database."""

from __future__ import annotations

from datetime import datetime

import psycopg
import pytest

from agentmesh.domain.timers import When
from agentmesh.store import agents, timers
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh
from tests.store.test_timers import later, make_due, state

pytestmark = [pytest.mark.only_rows, pytest.mark.usefixtures("nothing_is_broken")]


@pytest.fixture
def timer(mesh: Mesh) -> int:
    """One that is due."""
    made = later(mesh, mesh.fork(mesh.root, "a"), When(cron="* * * * * UTC"))
    make_due(mesh, made)
    return made


def mails(mesh: Mesh) -> int:
    found: int = mesh.one("select count(*) from agentmesh.mail")
    return found


def look(conn: psycopg.Connection) -> tuple[int, str, datetime, datetime]:
    """What a worker reads before it computes the next time."""
    (due,) = conn.execute(
        "select id, cron, due_at, clock_timestamp() from agentmesh.timers where cron is not null"
    ).fetchall()
    return due


def test_of_two_workers_that_ring_it_at_once_one_does_and_nobody_waits(mesh: Mesh, stage: Stage, timer: int):
    assert timers.ring_crons(stage.holder) == 1
    other = stage.meanwhile(timers.ring_crons, blocks=False)
    assert other.result() == 0
    stage.holder.commit()
    assert timers.ring_crons(stage.other) == 0
    assert (mails(mesh), state(mesh, timer)) == (1, "pending")


def test_a_worker_that_has_looked_before_another_rang_it_rings_nothing(mesh: Mesh, stage: Stage, timer: int):
    found = look(stage.other)
    assert mesh.run(timers.ring_crons) == 1
    assert timers._ring_cron(stage.other, *found) == 0
    make_due(mesh, timer, ago=2)  # it is due again, at another time than the worker saw
    assert timers._ring_cron(stage.other, *found) == 0
    assert mails(mesh) == 1


def test_a_worker_that_dies_before_its_commit_leaves_it_to_the_next(mesh: Mesh, stage: Stage, timer: int):
    assert timers.ring_crons(stage.holder) == 1
    assert mesh.one("select pg_terminate_backend(%s, 20000)", stage.holder.info.backend_pid)
    assert mails(mesh) == 0
    assert timers.ring_crons(stage.other) == 1
    assert (mails(mesh), state(mesh, timer)) == (1, "pending")


def test_it_does_not_ring_for_an_agent_that_is_being_killed(mesh: Mesh, stage: Stage, timer: int):
    recipient = mesh.one("select recipient from agentmesh.timers")
    agents.kill(stage.holder, recipient)
    late = stage.meanwhile(timers.ring_crons, blocks=False)
    assert late.result() == 0
    stage.holder.commit()
    assert timers.ring_crons(stage.other) == 0
    assert (mails(mesh), state(mesh, timer)) == (0, "dead")


def test_a_kill_that_comes_meanwhile_waits_for_the_ring(mesh: Mesh, stage: Stage, timer: int):
    recipient = mesh.one("select recipient from agentmesh.timers")
    assert timers.ring_crons(stage.holder) == 1
    kill = stage.meanwhile(lambda conn: agents.kill(conn, recipient), blocks=True)
    stage.holder.commit()
    assert len(kill.result()) == 1
    assert (mails(mesh), state(mesh, timer)) == (1, "dead")


def test_one_that_is_being_cancelled_is_left_alone(mesh: Mesh, stage: Stage, timer: int):
    assert timers.cancel(stage.holder, mesh.session, timer)
    late = stage.meanwhile(timers.ring_crons, blocks=False)
    assert late.result() == 0
    stage.holder.commit()
    assert (mails(mesh), state(mesh, timer)) == (0, "cancelled")


def test_two_calls_with_one_new_key_set_one_timer(mesh: Mesh, stage: Stage):
    def send(conn: psycopg.Connection) -> int:
        return timers.send_later(conn, None, mesh.root, "x", When(after=600), key="k")

    first = send(stage.holder)
    second = stage.meanwhile(send, blocks=True)
    stage.holder.commit()
    assert second.result() == first
    assert mesh.one("select count(*) from agentmesh.timers") == 1
