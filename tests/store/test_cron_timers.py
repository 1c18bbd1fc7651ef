"""Timers by cron expressions: a worker computes the next time, and rings and sets it in one commit."""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg
import pytest

from agentmesh.domain.errors import BadArgument, UsageError
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.timers import When
from agentmesh.store import timers, workers
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh
from tests.store.test_timers import later, make_due, state, tick

pytestmark = pytest.mark.only_rows

MINUTES = "* * * * * UTC"


def due_at(mesh: Mesh, timer: int) -> datetime:
    return mesh.run(timers.due_at, timer)


def is_announced(mesh: Mesh) -> bool:
    return any(seen.what == "cron" for seen in mesh.run(workers.tick, mesh.worker, {}))


def by_sql(mesh: Mesh, to: AgentId, cron: str, at: str = "clock_timestamp()") -> int:
    """Set a timer in plain SQL, where nobody reads the expression."""
    timer: int = mesh.one(f"select agentmesh.send_later(null, %s, 'remember', at => {at}, cron => %s)", to, cron)
    return timer


def test_it_rings_wakes_and_is_due_again_in_one_commit(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(cron=MINUTES))
    left = due_at(mesh, timer) - mesh.one("select clock_timestamp()")
    assert timedelta() < left <= timedelta(minutes=1)
    assert not is_announced(mesh)
    make_due(mesh, timer)
    assert is_announced(mesh)
    assert mesh.run(timers.ring_crons) == 1
    assert mesh.run(timers.ring_crons) == 0
    assert not is_announced(mesh)
    assert (mesh.unread(a), state(mesh, timer), mesh.status(a)) == (["remember"], "pending", AgentStatus.RUNNING)
    assert due_at(mesh, timer) > mesh.one("select clock_timestamp()")
    assert mesh.one(
        "select m.xmin = t.xmin from agentmesh.mail m, agentmesh.timers t where m.recipient = %s and t.mail_id = m.id",
        a,
    )


def test_timers_of_an_agent_that_somebody_holds_keep_nobody_elses_from_ringing(mesh: Mesh, stage: Stage):
    held, free = mesh.fork(mesh.root, "held"), mesh.fork(mesh.root, "free")
    for _ in range(20):
        make_due(mesh, later(mesh, held, When(cron=MINUTES)), ago=60)
    make_due(mesh, later(mesh, free, When(cron=MINUTES)))
    stage.holder.execute("select from agentmesh.agents where id = %s for no key update", [held])
    assert mesh.run(timers.ring_crons) == 1
    assert (mesh.unread(free), mesh.unread(held)) == (["remember"], [])
    stage.holder.rollback()
    assert mesh.run(timers.ring_crons) == 20


def test_the_tick_of_a_database_alone_leaves_it(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(cron=MINUTES))
    make_due(mesh, timer)
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == ([], "pending")


def test_missed_times_collapse_into_one_and_the_next_is_in_the_future(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(cron=MINUTES))
    make_due(mesh, timer, ago=60 * 60 * 24 * 3)
    assert mesh.run(timers.ring_crons) == 1
    assert mesh.run(timers.ring_crons) == 0
    assert mesh.unread(a) == ["remember"]
    assert due_at(mesh, timer) > mesh.one("select clock_timestamp()")


def test_if_the_clock_is_set_back_it_rings_late_and_not_twice(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(cron=MINUTES))
    make_due(mesh, timer)
    mesh.run(timers.ring_crons)
    make_due(mesh, timer, ago=-3600)  # as if it had rung an hour ahead of the clock
    assert not is_announced(mesh)
    assert mesh.run(timers.ring_crons) == 0
    assert mesh.unread(a) == ["remember"]


def test_it_ends_with_its_recipient_and_when_it_is_cancelled(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    cancelled, dead = (later(mesh, a, When(cron=MINUTES)) for _ in range(2))
    mesh.run(timers.cancel, mesh.session, cancelled)
    mesh.kill(a)
    for timer in (cancelled, dead):
        make_due(mesh, timer)
    assert mesh.run(timers.ring_crons) == 0
    assert [state(mesh, cancelled), state(mesh, dead)] == ["cancelled", "dead"]


def test_a_full_mailbox_puts_it_off_and_then_it_keeps_to_its_times(conn: psycopg.Connection):
    mesh = Mesh(conn, max_unread=1)
    a = mesh.fork(mesh.root, "a", "work")
    timer = later(mesh, a, When(cron="0 0 1 1 * UTC"))
    first = due_at(mesh, timer)
    make_due(mesh, timer)
    assert mesh.run(timers.ring_crons) == 0
    assert (mesh.unread(a), state(mesh, timer)) == (["work"], "mailbox full")
    mesh.begin(a)
    make_due(mesh, timer)
    assert mesh.run(timers.ring_crons) == 1
    assert (mesh.unread(a), state(mesh, timer), due_at(mesh, timer)) == (["remember"], "pending", first)


def test_more_than_a_look_finds_ring_one_look_after_the_other(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    for _ in range(25):
        make_due(mesh, later(mesh, a, When(cron=MINUTES)))
    assert [mesh.run(timers.ring_crons) for _ in range(3)] == [20, 5, 0]


def test_as_a_tool_its_result_says_the_expression_and_its_zone(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    call = mesh.call(mesh.root, "send")[0]
    timer = later(mesh, a, When(cron="0 9 * * 1-5 Europe/Berlin"), mesh.root, call)
    result = mesh.result(call)
    assert (result["status"], result["timer_id"]) == ("scheduled", timer)
    assert result["cron"] == "0 9 * * 1-5 Europe/Berlin"


def test_one_that_is_never_due_or_too_late_is_refused_in_words(mesh: Mesh):
    with pytest.raises(UsageError, match="is never due"):
        later(mesh, mesh.root, When(cron="0 0 */29 2 1#5 UTC"))
    with pytest.raises(UsageError, match=r"is due first on \d{4}-\d\d-\d\d, more than 366 days from now"):
        later(mesh, mesh.root, When(cron="0 0 * 2 MON#5 UTC"))


@pytest.mark.parametrize("more", [{"after": 60}, {"every": 3600}, {"at": datetime.fromisoformat("2100-01-01T00:00Z")}])
def test_it_takes_no_other_time(mesh: Mesh, more):
    with pytest.raises(BadArgument):
        later(mesh, mesh.root, When(cron=MINUTES, **more))
    assert mesh.one("select count(*) from agentmesh.timers") == 0


@pytest.mark.parametrize(
    "arguments",
    ["cron => '* * * * * UTC'", "at => now(), cron => ''", "at => now(), cron => repeat('*', 201)"],
)
def test_in_plain_sql_it_comes_with_its_first_time(mesh: Mesh, arguments: str):
    with pytest.raises(BadArgument, match="cron"):
        mesh.run(lambda conn: conn.execute(f"select agentmesh.send_later(null, %s, 'x', {arguments})", [mesh.root]))


@pytest.mark.parametrize("cron", ["no expression", "0 9 * * * Europe/Nowhere", "0 0 */29 2 1#5 UTC"])
def test_what_no_worker_can_read_rings_at_its_first_time_only(mesh: Mesh, cron: str):
    a = mesh.fork(mesh.root, "a")
    timer = by_sql(mesh, a, cron)
    assert mesh.run(timers.ring_crons) == 1
    assert (mesh.unread(a), state(mesh, timer)) == (["remember"], "rung")


@pytest.mark.parametrize("first", ["'-infinity'", "now() - interval '1 day'"])
def test_a_first_time_that_has_passed_is_now(mesh: Mesh, first: str):
    a = mesh.fork(mesh.root, "a")
    timer = by_sql(mesh, a, MINUTES, first)
    assert mesh.run(timers.ring_crons) == 1
    assert due_at(mesh, timer) > mesh.one("select clock_timestamp()")
