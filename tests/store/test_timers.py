"""send_later: due messages become mail once, in the tick of one worker, and end in a clear state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import (
    BadArgument,
    CallClosed,
    DeadAgent,
    EmptyMessage,
    KeyReused,
    OtherSession,
    TooManyTimers,
    UnknownAgent,
    UnknownImage,
    UnknownTimer,
    WaitCircle,
)
from agentmesh.domain.ids import AgentId
from agentmesh.domain.images import read_image
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.timers import When
from agentmesh.store import images, sessions, timers, workers
from agentmesh.store.call import Lease
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh, entry, unknown
from tests.fixtures.pictures import png

pytestmark = pytest.mark.only_rows


def later(
    mesh: Mesh, to: AgentId, when: When, sender: AgentId | None = None, lease: Lease | None = None, **more: Any
) -> int:
    return mesh.run(timers.send_later, sender, to, "remember", when, lease, **more)


def make_due(mesh: Mesh, timer: int, ago: float = 1) -> None:
    mesh.conn.execute(
        "update agentmesh.timers set due_at = clock_timestamp() - make_interval(secs => %s) where id = %s", [ago, timer]
    )


def tick(mesh: Mesh) -> None:
    mesh.run(workers.tick, mesh.worker, {})


def state(mesh: Mesh, timer: int) -> str:
    found: str = mesh.one("select state from agentmesh.v_timers where id = %s", timer)
    return found


def test_a_timer_that_is_due_wakes_its_recipient_in_one_commit_and_rings_once(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(after=600))
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == ([], "pending")
    make_due(mesh, timer)
    tick(mesh)
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == (["remember"], "rung")
    assert mesh.status(a) is AgentStatus.RUNNING
    assert mesh.one(
        "select a.xmin = m.xmin and m.xmin = t.xmin from agentmesh.agents a, agentmesh.mail m, agentmesh.timers t"
        " where a.id = %s and m.recipient = a.id and t.mail_id = m.id",
        a,
    )


def test_missed_times_collapse_into_one_and_the_next_is_in_the_future(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(every=60))
    make_due(mesh, timer, ago=605)
    tick(mesh)
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == (["remember"], "pending")
    left = mesh.one("select extract(epoch from due_at - clock_timestamp()) from agentmesh.timers where id = %s", timer)
    assert 0 < left <= 60


def test_two_messages_to_one_agent_are_both_rung_and_wake_it_once(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    for _ in range(2):
        make_due(mesh, later(mesh, a, When(after=600)))
    tick(mesh)
    assert mesh.unread(a) == ["remember"] * 2
    assert mesh.one("select turn from agentmesh.agents where id = %s", a) == 1


def test_of_two_workers_one_rings_it_and_a_crash_before_the_commit_loses_nothing(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    make_due(mesh, later(mesh, a, When(after=600)))
    with psycopg.connect(mesh.url, autocommit=True) as dying:
        dying.execute("begin")
        assert dying.execute("select agentmesh.ring_timers()").fetchone() == (1,)
        assert mesh.one("select agentmesh.ring_timers()") == 0  # the other one holds it, and nobody waits
        assert mesh.one("select pg_terminate_backend(%s, 20000)", dying.info.backend_pid)
        dying.close()
    assert mesh.unread(a) == []
    with psycopg.connect(mesh.url, autocommit=True) as other:
        other.execute("begin")
        other.execute("select agentmesh.ring_timers()")
        assert mesh.one("select agentmesh.ring_timers()") == 0
        other.execute("commit")
    assert mesh.one("select agentmesh.ring_timers()") == 0
    assert mesh.unread(a) == ["remember"]


def test_timers_of_an_agent_that_somebody_holds_keep_nobody_elses_from_ringing(mesh: Mesh, stage: Stage):
    held, free = mesh.fork(mesh.root, "held"), mesh.fork(mesh.root, "free")
    for _ in range(20):
        make_due(mesh, later(mesh, held, When(after=600)), ago=60)
    timer = later(mesh, free, When(after=600))
    make_due(mesh, timer)
    stage.holder.execute("select from agentmesh.agents where id = %s for no key update", [held])
    tick(mesh)
    assert (state(mesh, timer), mesh.unread(held)) == ("rung", [])
    stage.holder.rollback()
    tick(mesh)
    assert len(mesh.unread(held)) == 20


def test_it_ends_with_its_recipient_its_sender_and_its_session(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    to_a, from_a = later(mesh, a, When(after=600)), later(mesh, b, When(after=600), sender=a)
    to_b = later(mesh, b, When(every=60))
    mesh.kill(a)
    assert [state(mesh, one) for one in (to_a, from_a, to_b)] == ["dead", "dead", "pending"]
    mesh.run(sessions.end_session, mesh.session)
    assert state(mesh, to_b) == "dead"


def test_a_full_mailbox_puts_it_off_and_says_so(conn: psycopg.Connection):
    mesh = Mesh(conn, max_unread=1)
    a = mesh.fork(mesh.root, "a", "work")
    timer = later(mesh, a, When(after=600))
    make_due(mesh, timer)
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == (["work"], "mailbox full")
    mesh.begin(a)
    make_due(mesh, timer)
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == (["remember"], "rung")


def test_as_a_tool_its_result_is_in_the_same_commit(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    call = mesh.call(mesh.root, "send")[0]
    timer = later(mesh, a, When(after=600), mesh.root, call)
    result = mesh.result(call)
    assert (result["status"], result["timer_id"], result["to"]["name"]) == ("scheduled", timer, "a")
    with pytest.raises(CallClosed):
        later(mesh, a, When(after=600), mesh.root, call)


def test_one_that_is_cancelled_never_rings(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(every=60))
    assert mesh.run(timers.cancel, mesh.session, timer)
    assert not mesh.run(timers.cancel, mesh.session, timer)
    make_due(mesh, timer)
    tick(mesh)
    assert (mesh.unread(a), state(mesh, timer)) == ([], "cancelled")
    with pytest.raises(UnknownTimer):
        mesh.run(timers.cancel, mesh.session, 999_999)


def test_a_repeated_message_may_have_another_first_time(mesh: Mesh):
    for first in (timedelta(minutes=1), timedelta(hours=5)):
        at = datetime.now(UTC) + first
        assert mesh.run(timers.due_at, later(mesh, mesh.root, When(at=at, every=3600))) == at


NOW = datetime.now(UTC)


@pytest.mark.parametrize(
    "when",
    [
        When(),
        When(every=1),
        When(every=-60),
        When(every=float("nan")),
        When(every=float("inf")),
        When(after=-1),
        When(after=float("nan")),
        When(after=float("inf")),
        When(after=600, at=NOW + timedelta(days=1)),
        When(at=NOW - timedelta(hours=1)),
        When(at=datetime(9999, 12, 31, tzinfo=UTC)),
    ],
)
def test_times_without_sense_are_refused(mesh: Mesh, when: When):
    with pytest.raises(BadArgument):
        later(mesh, mesh.root, when)


def test_what_send_refuses_is_refused(mesh: Mesh):
    a, when = mesh.fork(mesh.root, "a"), When(after=600)
    with pytest.raises(UnknownAgent):
        later(mesh, AgentId(unknown()), when)
    with pytest.raises(OtherSession):
        later(mesh, mesh.new_session(), when, a)
    with pytest.raises(EmptyMessage):
        mesh.run(timers.send_later, None, a, " ", when)
    mesh.kill(a)
    with pytest.raises(DeadAgent):
        later(mesh, a, when)


def test_a_session_has_at_most_a_hundred(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    for _ in range(100):
        timer = later(mesh, a, When(after=600))
    with pytest.raises(TooManyTimers):
        later(mesh, a, When(after=600))
    mesh.run(timers.cancel, mesh.session, timer)
    later(mesh, a, When(after=600))


# Alarms: timers to oneself


def test_an_alarm_wakes_the_agent_that_set_it(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    timer = later(mesh, a, When(after=600), a, mesh.call(a, "send")[0])
    mesh.answer(a)
    make_due(mesh, timer)
    tick(mesh)
    assert (mesh.unread(a), mesh.status(a), state(mesh, timer)) == (["remember"], AgentStatus.RUNNING, "rung")
    mesh.begin(a)
    shown = mesh.one("select content from agentmesh.transcript where agent_id = %s order by seq desc limit 1", a)
    assert (shown["about"], shown["sender"], shown["text"]) == ("alarm", str(a), "remember")


def test_alarms_of_an_agent_that_does_nothing_else_put_it_on_hold(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    for n in range(26):
        make_due(mesh, later(mesh, a, When(after=600), a))
        tick(mesh)
        if n < 25:
            mesh.begin(a)
            mesh.answer(a)
    assert (mesh.status(a), mesh.rows(a)[-1][1]["event"]) == (AgentStatus.IDLE, "held")
    make_due(mesh, later(mesh, a, When(after=600)))
    tick(mesh)
    assert mesh.status(a) is AgentStatus.RUNNING, "a timer of a person wakes it"


def test_a_wait_takes_an_alarm(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    timer = later(mesh, a, When(after=600), a, mesh.call(a, "send")[0])
    assert mesh.wait(a) is None
    make_due(mesh, timer)
    tick(mesh)
    assert mesh.take(a) == {"outcome": "complete", "results": [entry(a, "a", "received", message="remember")]}


def test_a_wait_for_oneself_says_how_to_wait_for_an_alarm(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    later(mesh, a, When(after=600), a, mesh.call(a, "send")[0])
    with pytest.raises(WaitCircle, match="a → a") as refused:
        mesh.wait(a, a)
    assert "a wait for anyone takes your alarms too" in refused.value.hint


def test_who_waits_for_an_alarm_is_not_stuck(mesh: Mesh):
    assert mesh.wait(mesh.root) is None
    stuck = "select count(*) from agentmesh.v_stuck where problem = 'all wait for anyone'"
    assert mesh.one(stuck) == 1
    later(mesh, mesh.root, When(after=600), mesh.root)
    assert mesh.one(stuck) == 0


def test_an_alarm_ends_with_its_agent(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    timer = later(mesh, a, When(every=60), a)
    mesh.kill(a)
    assert state(mesh, timer) == "dead"


# Images and keys


def test_it_brings_its_images(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    image = read_image("shot.png", png())
    mesh.run(images.keep, mesh.session, image)
    timer = later(mesh, a, When(every=60), images=[image.reference()])
    for _ in range(2):
        make_due(mesh, timer)
        tick(mesh)
    assert mesh.column("select images -> 0 ->> 'name' from agentmesh.mail where recipient = %s", a) == ["shot.png"] * 2
    with pytest.raises(UnknownImage):
        later(mesh, a, When(after=600), images=[{"sha256": "none", "name": "shot.png"}])


def test_the_same_key_is_the_same_timer_also_when_it_has_rung(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    timer = later(mesh, a, When(after=600), key="k")
    assert later(mesh, a, When(after=300), key="k") == timer, "a span begins again with each call"
    make_due(mesh, timer)
    tick(mesh)
    assert later(mesh, a, When(after=600), key="k") == timer
    assert mesh.unread(a) == ["remember"]
    others = {later(mesh, b, When(after=600), key="k"), later(mesh, a, When(after=600), b, key="k")}
    assert len(others - {timer}) == 2
    mesh.kill(a)
    assert later(mesh, a, When(after=600), key="k") == timer


def test_a_key_whose_message_was_called_off_promises_nothing(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.run(timers.cancel, mesh.session, later(mesh, a, When(every=600), key="k"))
    with pytest.raises(KeyReused, match="the message with the key 'k' was cancelled"):
        later(mesh, a, When(every=600), key="k")
    with pytest.raises(KeyReused, match="another message"):
        later(mesh, a, When(every=60), key="k")
    assert later(mesh, a, When(every=600), key="k2")


def test_a_key_whose_message_ended_with_its_recipient_promises_nothing(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    later(mesh, a, When(after=600), key="k")
    mesh.kill(a)
    with pytest.raises(DeadAgent):
        later(mesh, a, When(after=600), key="k")


def test_a_key_names_one_message_with_its_time(mesh: Mesh):
    day = datetime.now(UTC) + timedelta(days=1)
    daily = When(cron="0 9 * * * UTC")
    timer = later(mesh, mesh.root, When(at=day), key="at")
    later(mesh, mesh.root, daily, key="cron")
    assert later(mesh, mesh.root, When(at=day), key="at") == timer
    for key, other in (
        ("at", When(at=day + timedelta(hours=1))),
        ("at", When(after=600)),
        ("at", When(every=600)),
        ("at", daily),
        ("cron", When(cron="0 10 * * * UTC")),
    ):
        with pytest.raises(KeyReused):
            later(mesh, mesh.root, other, key=key)
    with pytest.raises(KeyReused):
        mesh.run(timers.send_later, None, mesh.root, "something else", When(at=day), None, "at")


def test_a_time_that_is_over_meanwhile_does_not_matter_to_a_known_key(mesh: Mesh):
    soon = mesh.one("select clock_timestamp() + interval '0.1 s'")
    timer = later(mesh, mesh.root, When(at=soon), key="k")
    mesh.conn.execute("select pg_sleep_until(%s)", [soon])
    assert later(mesh, mesh.root, When(at=soon), key="k") == timer


@pytest.mark.parametrize("key", ["", "ä" * 101])
def test_a_key_that_does_not_fit_is_refused(mesh: Mesh, key: str):
    with pytest.raises(BadArgument, match="1 to 200"):
        later(mesh, mesh.root, When(after=600), key=key)


def test_keys_of_later_messages_say_nothing_about_others(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.send(None, a, "now", key="k")
    timer = later(mesh, a, When(after=600), key="k")
    make_due(mesh, timer)
    tick(mesh)
    assert mesh.unread(a) == ["now", "remember"]
