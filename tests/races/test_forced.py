"""Races whose outcome is known: who comes first decides, and nothing is lost in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import DeadAgent, Fenced, TurnInterrupted, UrgentMailFirst
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import agents, limits, mailbox, send_many, steps, waits, workers
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from tests.fixtures.blocking import Blocked, Stage, sqlstate
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh, entry

pytestmark = pytest.mark.only_rows


@pytest.fixture(autouse=True)
def nothing_is_broken(mesh: Mesh) -> Iterator[None]:
    yield
    assert violations(mesh.conn) == []


def test_a_fork_that_comes_first_dies_with_the_tree(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    child = agents.fork(stage.holder, a, "child", "work")
    kill = stage.meanwhile(lambda conn: agents.kill(conn, a), blocks=True)
    stage.holder.commit()
    assert [ref.id for ref in kill.result()] == [a, child]


def test_a_fork_that_comes_after_the_kill_fails(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    agents.kill(stage.holder, a)
    fork = stage.meanwhile(lambda conn: agents.fork(conn, a, "child", "work"), blocks=True)
    stage.holder.commit()
    with pytest.raises(DeadAgent), translated():
        fork.result()


def test_a_fork_of_a_grandchild_races_with_the_kill_of_its_grandparent(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a")
    b = mesh.fork(a, "b", "work")
    call = mesh.call(b, "fork")[0]
    agents.kill(stage.holder, a)
    fork = stage.meanwhile(lambda conn: agents.fork(conn, b, "c", "work", call), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        fork.result()
    assert mesh.result(call) == {"error": "killed"}


def test_a_kill_rolled_back_lets_the_fork_live(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    agents.kill(stage.holder, a)
    fork = stage.meanwhile(lambda conn: agents.fork(conn, a, "child", "work"), blocks=True)
    stage.holder.rollback()
    assert mesh.status(fork.result()) is AgentStatus.RUNNING


@pytest.mark.parametrize(("limit", "state"), [({"max_agents": 2}, "AM034"), ({"max_living": 3}, "AM039")])
def test_of_two_forks_for_the_last_place_the_second_is_refused(
    mesh: Mesh, stage: Stage, limit: dict[str, int], state: str
):
    mesh.run(limits.set_limits, mesh.session, limit)
    mesh.fork(mesh.root, "a", "work")
    agents.fork(stage.holder, mesh.root, "b", "work")
    fork = stage.meanwhile(lambda conn: agents.fork(conn, mesh.root, "c", "work"), blocks=True)
    stage.holder.commit()
    assert sqlstate(fork.result) == state


def test_a_fork_waits_for_no_message_that_wakes_an_agent(mesh: Mesh, stage: Stage):
    mesh.run(limits.set_limits, mesh.session, {"max_agents": 1})
    idle = mesh.fork(mesh.root, "a")
    mailbox.send(stage.holder, None, idle, "work")
    fork = stage.meanwhile(lambda conn: agents.fork(conn, mesh.root, "b", "work"), blocks=False)
    stage.holder.commit()
    fork.result()
    assert sqlstate(lambda: agents.fork(stage.other, mesh.root, "c", "work")) == "AM034"


def test_a_message_to_several_reaches_nobody_if_one_dies_first(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    agents.kill(stage.holder, b)
    sent = stage.meanwhile(lambda conn: send_many.send_many(conn, None, [a, b], "x"), blocks=True)
    stage.holder.commit()
    with pytest.raises(DeadAgent), translated():
        sent.result()
    assert mesh.status(a) is AgentStatus.IDLE


def test_a_message_to_the_children_leaves_out_one_that_dies_first(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    agents.kill(stage.holder, b)
    sent = stage.meanwhile(lambda conn: send_many.send_many(conn, mesh.root, Audience.CHILDREN, "x"), blocks=True)
    stage.holder.commit()
    assert [one.agent_id for one in sent.result()] == [a]


def test_two_messages_to_the_same_agents_in_another_order_do_not_deadlock(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    first = send_many.send_many(stage.holder, None, [b, a], "x")
    second = stage.meanwhile(lambda conn: send_many.send_many(conn, None, [a, b], "y"), blocks=True)
    stage.holder.commit()
    assert len(first) == len(second.result()) == 2


def test_two_calls_with_one_key_send_once_though_a_child_comes_in_between(mesh: Mesh, stage: Stage):
    mesh.fork(mesh.root, "a")
    first = send_many.send_many(stage.holder, None, Audience.CHILDREN, "x", "k", around=mesh.root)
    mesh.fork(mesh.root, "b")
    again = stage.meanwhile(
        lambda conn: send_many.send_many(conn, None, Audience.CHILDREN, "x", "k", around=mesh.root), blocks=True
    )
    stage.holder.commit()
    assert again.result() == first


def test_overlapping_kills_both_return_and_nobody_dies_twice(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a")
    b = mesh.fork(a, "b")
    first = agents.kill(stage.holder, b)
    second = stage.meanwhile(lambda conn: agents.kill(conn, a), blocks=True)
    stage.holder.commit()
    assert [ref.id for ref in first] == [b]
    assert [ref.id for ref in second.result()] == [a]


def test_mail_in_the_instant_a_turn_ends_starts_the_next_turn(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    mailbox.send(stage.holder, mesh.root, a, "news")
    end = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, {"text": "done"}, [], {}), blocks=True)
    stage.holder.commit()
    assert end.result().status is AgentStatus.RUNNING
    assert mesh.unread(a) == []


def test_mail_in_the_instant_after_wakes_the_idle_agent(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    steps.finish_step(stage.holder, mesh.begin(a), {"text": "done"}, [], {})
    send = stage.meanwhile(lambda conn: mailbox.send(conn, mesh.root, a, "news"), blocks=True)
    stage.holder.commit()
    send.result()
    assert mesh.status(a) is AgentStatus.RUNNING
    assert mesh.unread(a) == ["news"]


CORRECTED = {"text": "{", "correction": {"reason": "call", "text": "Call the tool now."}}


def test_mail_in_the_instant_of_a_correction_is_read_after_it(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    mailbox.send(stage.holder, None, a, "news")
    correct = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, CORRECTED, [], {}), blocks=True)
    stage.holder.commit()
    assert correct.result().status is AgentStatus.RUNNING
    begun = mesh.run(steps.begin_step, lease, 0)
    assert [row.content["text"] for row in begun.rows[-3:]] == ["{", "Call the tool now.", "news"]
    assert mesh.answer(a) is AgentStatus.IDLE


def test_no_correction_comes_after_a_kill(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    agents.kill(stage.holder, a)
    correct = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, CORRECTED, [], {}), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        correct.result()
    assert mesh.one("select count(*) from agentmesh.transcript where agent_id = %s and content ? 'correction'", a) == 0


def test_an_interrupt_in_the_instant_of_a_correction_ends_the_turn(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    agents.interrupt(stage.holder, a)
    correct = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, CORRECTED, [], {}), blocks=True)
    stage.holder.commit()
    assert correct.result().status is AgentStatus.RUNNING
    with pytest.raises(TurnInterrupted):
        mesh.run(steps.begin_step, lease, 0)
    assert mesh.run(steps.stop_turn, lease, None, None) is AgentStatus.IDLE


def test_urgent_mail_in_the_instant_a_call_starts_comes_first(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    (call,) = mesh.call(a, "bash")
    mailbox.send(stage.holder, mesh.root, a, "stop", urgent=True)
    start = stage.meanwhile(lambda conn: steps.start_calls(conn, call, [0]), blocks=True)
    stage.holder.commit()
    with pytest.raises(UrgentMailFirst), translated():
        start.result()


def test_a_call_that_started_in_the_instant_before_urgent_mail_goes_on(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    (call,) = mesh.call(a, "bash")
    steps.start_calls(stage.holder, call, [0])
    send = stage.meanwhile(lambda conn: mailbox.send(conn, mesh.root, a, "stop", urgent=True), blocks=True)
    stage.holder.commit()
    send.result()
    assert mesh.one("select status from agentmesh.tool_calls where agent_id = %s", a) == "started"
    assert mesh.unread(a) == ["stop"]


def test_mail_to_an_agent_that_is_being_killed_is_refused(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a")
    agents.kill(stage.holder, a)
    send = stage.meanwhile(lambda conn: mailbox.send(conn, None, a, "too late"), blocks=True)
    stage.holder.commit()
    with pytest.raises(DeadAgent), translated():
        send.result()
    assert mesh.unread(a) == []


def test_mail_before_the_kill_is_delivered(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a")
    mailbox.send(stage.holder, None, a, "in time")
    kill = stage.meanwhile(lambda conn: agents.kill(conn, a), blocks=True)
    stage.holder.commit()
    assert [ref.id for ref in kill.result()] == [a]
    assert mesh.unread(a) == ["in time"]


def test_a_killed_agent_sends_nothing_any_more(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b")
    call = mesh.call(a, "send")[0]
    agents.kill(stage.holder, a)
    send = stage.meanwhile(lambda conn: mailbox.send(conn, a, b, "from the grave", None, call), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        send.result()
    assert mesh.unread(b) == []


def test_two_agents_send_to_each_other_at_once(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    from_a, from_b = mesh.call(a, "send")[0], mesh.call(b, "send")[0]
    mailbox.send(stage.holder, a, b, "to b", None, from_a)
    other = stage.meanwhile(lambda conn: mailbox.send(conn, b, a, "to a", None, from_b), blocks=True)
    stage.holder.commit()
    other.result()
    assert (mesh.unread(a), mesh.unread(b)) == (["to a"], ["to b"])


def test_the_same_key_from_two_clients_at_once_is_one_mail(mesh: Mesh, stage: Stage):
    first = mailbox.send(stage.holder, None, mesh.root, "once", "k")
    other = stage.meanwhile(lambda conn: mailbox.send(conn, None, mesh.root, "once", "k"), blocks=True)
    stage.holder.commit()
    assert other.result() == first
    assert mesh.unread(mesh.root) == ["once"]


def wait_for(mesh: Mesh, *targets):
    """Return a call that begins the root's wait, as the store repeats it."""
    call = mesh.call(mesh.root, "wait")[0]
    resolved = mesh.targets(*targets)

    def begin(conn: psycopg.Connection):
        try:
            return waits.wait_begin(conn, mesh.root, resolved, 30, call)
        except psycopg.errors.SerializationFailure:
            return waits.wait_begin(conn, mesh.root, resolved, 30, call)

    return begin


def test_a_wait_that_begins_while_its_target_answers_and_ends_is_received(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    begin, lease = wait_for(mesh, a), mesh.begin(a)
    mailbox.send(stage.holder, a, mesh.root, "the answer")
    steps.finish_step(stage.holder, lease, {"text": "done"}, [], {})
    wait = stage.meanwhile(begin, blocks=True)
    stage.holder.commit()
    assert wait.result() == {"outcome": "complete", "results": [entry(a, "a", "received", message="the answer")]}


def test_a_wait_that_begins_while_its_target_ends_sees_it_idle(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    begin, lease = wait_for(mesh, a), mesh.begin(a)
    steps.finish_step(stage.holder, lease, {"text": "the end"}, [], {})
    wait = stage.meanwhile(begin, blocks=True)
    stage.holder.commit()
    assert wait.result() == {"outcome": "complete", "results": [entry(a, "a", "idle", output="the end")]}


def test_a_wait_that_begins_while_its_target_is_killed_sees_it_dead(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    begin = wait_for(mesh, a)
    agents.kill(stage.holder, a)
    wait = stage.meanwhile(begin, blocks=True)
    stage.holder.commit()
    assert wait.result() == {"outcome": "complete", "results": [entry(a, "a", "dead")]}


def test_a_wait_that_looked_while_its_target_was_idle_asks_again_when_it_was_given_work(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a")
    call = mesh.call(mesh.root, "wait")[0]
    mailbox.send(stage.holder, mesh.root, a, "work")
    wait = stage.meanwhile(lambda conn: waits.wait_begin(conn, mesh.root, mesh.targets(a), 30, call), blocks=True)
    stage.holder.commit()
    with pytest.raises(psycopg.errors.SerializationFailure):
        wait.result()
    assert mesh.wait(mesh.root, a, lease=call) is None, "it runs now, so the wait registers"


def test_the_end_of_a_turn_tells_a_waiter_that_registers_in_the_same_instant(
    mesh: Mesh, stage: Stage, database_url: str
):
    a = mesh.fork(mesh.root, "a", "work")
    begin, lease = wait_for(mesh, a), mesh.begin(a)
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute(f'listen "agent_event_{mesh.root}"')
        assert begin(stage.holder) is None
        end = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, {"text": "x"}, [], {}), blocks=True)
        stage.holder.commit()
        end.result()
        (heard,) = listener.notifies(timeout=10, stop_after=1)
    assert heard.payload == "waited"
    assert mesh.take(mesh.root) is not None


def test_two_waits_that_would_close_a_circle_at_once_do_not(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    begin = wait_for(mesh, a)
    call, back = mesh.call(a, "wait")[0], mesh.targets(mesh.root)
    assert begin(stage.holder) is None
    other = stage.meanwhile(lambda conn: waits.wait_begin(conn, a, back, 30, call), blocks=True)
    stage.holder.commit()
    with pytest.raises(psycopg.Error) as refused:
        other.result()
    assert refused.value.sqlstate == "AM052"


def test_a_message_in_the_instant_of_the_timeout_is_taken_or_left_never_lost(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    assert wait_for(mesh, a)(mesh.conn) is None
    lease = mesh.lease(mesh.root)
    mailbox.send(stage.holder, a, mesh.root, "in time")
    take = stage.meanwhile(lambda conn: waits.wait_take(conn, mesh.root, WaitOutcome.TIMEOUT, lease), blocks=True)
    stage.holder.commit()
    assert take.result() == {"outcome": "complete", "results": [entry(a, "a", "received", message="in time")]}


def test_a_wait_that_ends_first_leaves_the_message_for_the_next(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    assert wait_for(mesh, a)(mesh.conn) is None
    waits.wait_take(stage.holder, mesh.root, WaitOutcome.TIMEOUT, mesh.lease(mesh.root))
    send = stage.meanwhile(lambda conn: mailbox.send(conn, a, mesh.root, "too late"), blocks=True)
    stage.holder.commit()
    send.result()
    assert mesh.unread(mesh.root) == ["too late"]


def test_a_result_is_written_once_when_two_take_it(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    call = mesh.call(mesh.root, "wait")[0]
    mesh.wait(mesh.root, a, lease=call)
    mesh.send(a, mesh.root, "answer")
    lease = mesh.lease(mesh.root)
    first = waits.wait_take(stage.holder, mesh.root, None, lease)
    second = stage.meanwhile(lambda conn: waits.wait_take(conn, mesh.root, None, lease), blocks=True)
    stage.holder.commit()
    assert second.result() is None
    assert mesh.result(call) == first


def test_an_interrupt_in_the_instant_the_turn_ends_stops_nothing_else(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    steps.finish_step(stage.holder, mesh.begin(a), {"text": "done"}, [], {})
    interrupt = stage.meanwhile(lambda conn: agents.interrupt(conn, a), blocks=True)
    stage.holder.commit()
    assert interrupt.result() is False
    mesh.send(None, a, "next")
    assert mesh.answer(a) is AgentStatus.IDLE


def test_mail_in_the_instant_of_an_interrupt_is_held_or_wakes(mesh: Mesh, stage: Stage):
    mesh.send(None, mesh.root, "first")
    mailbox.send(stage.holder, None, mesh.root, "second")
    interrupt = stage.meanwhile(lambda conn: agents.interrupt(conn, mesh.root), blocks=True)
    stage.holder.commit()
    assert interrupt.result() is True
    assert mesh.status(mesh.root) is AgentStatus.IDLE
    agents.interrupt(stage.holder, mesh.root)
    send = stage.meanwhile(lambda conn: mailbox.send(conn, None, mesh.root, "third"))
    stage.holder.commit()
    send.result()
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


@pytest.mark.parametrize("first", ["parent", "child"])
def test_a_child_that_stops_in_the_instant_its_idle_parent_is_interrupted_starts_nothing(
    mesh: Mesh, stage: Stage, first: str
):
    child = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork")[0])
    mesh.answer(mesh.root)
    lease = mesh.begin(child)
    mesh.interrupt(child)
    if first == "parent":
        agents.interrupt(stage.holder, mesh.root)
        other: Blocked[Any] = stage.meanwhile(lambda conn: steps.stop_turn(conn, lease), blocks=True)
    else:
        steps.stop_turn(stage.holder, lease)
        other = stage.meanwhile(lambda conn: agents.interrupt(conn, mesh.root), blocks=True)
    stage.holder.commit()
    other.result()
    assert (mesh.status(mesh.root), mesh.status(child)) == (AgentStatus.IDLE, AgentStatus.IDLE)
    assert mesh.unread(mesh.root) == ["interrupted by the user"]


def test_two_workers_claim_at_once_and_nobody_twice(mesh: Mesh, stage: Stage):
    queued = {mesh.fork(mesh.root, f"a{n}", "work") for n in range(4)}
    other = mesh.join()
    mine = {agent.id for agent in workers.claim(stage.holder, mesh.worker, 2)}
    theirs = stage.meanwhile(lambda conn: workers.claim(conn, other, 4), blocks=False)
    stage.holder.commit()
    assert {agent.id for agent in theirs.result()} == queued - mine


def test_an_agent_that_a_sender_holds_is_skipped_and_can_be_claimed_right_after(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    mailbox.send(stage.holder, None, a, "more")
    claim = stage.meanwhile(lambda conn: workers.claim(conn, mesh.worker, 1), blocks=False)
    assert claim.result() == []
    assert mesh.run(workers.claimable, mesh.worker, 1)
    stage.holder.commit()
    assert mesh.claim() == [a]


def test_a_worker_declared_dead_in_this_instant_claims_nothing(mesh: Mesh, stage: Stage):
    mesh.fork(mesh.root, "a", "work")
    workers.release(stage.holder, mesh.worker)
    claim = stage.meanwhile(lambda conn: workers.claim(conn, mesh.worker, 1), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        claim.result()


def test_a_worker_that_claims_in_this_instant_loses_it_to_the_release(mesh: Mesh, stage: Stage):
    a = mesh.fork(mesh.root, "a", "work")
    workers.claim(stage.holder, mesh.worker, 1)
    release = stage.meanwhile(lambda conn: workers.release(conn, mesh.worker), blocks=True)
    stage.holder.commit()
    assert release.result() == 1
    assert mesh.claim(worker=mesh.join()) == [a]


def test_two_workers_that_take_each_other_for_dead_do_not_wait_for_each_other(
    mesh: Mesh, stage: Stage, database_url: str
):
    with psycopg.connect(database_url, autocommit=True) as gone:
        one, two = mesh.join(gone), mesh.join(gone)
    stage.holder.execute("update agentmesh.workers set seen_at = clock_timestamp() where id = %s", [one])
    tick = stage.meanwhile(lambda conn: workers.tick(conn, two, {}), blocks=False)
    assert tick.result() == []
    assert mesh.one("select lost_at from agentmesh.workers where id = %s", one) is None


def test_a_worker_that_beats_in_the_instant_it_is_swept_lives(mesh: Mesh, stage: Stage):
    other = mesh.join()
    mesh.conn.execute("update agentmesh.workers set seen_at = '2020-01-01' where id = %s", [other])
    workers.tick(stage.holder, other, {})
    sweep = stage.meanwhile(lambda conn: workers.tick(conn, mesh.worker, {}), blocks=False)
    stage.holder.commit()
    sweep.result()
    assert mesh.one("select ended_at from agentmesh.workers where id = %s", other) is None


def test_a_report_and_the_end_of_the_parents_turn(mesh: Mesh, stage: Stage):
    child = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork")[0])
    child_lease, root_lease = mesh.begin(child), mesh.lease(mesh.root)
    steps.finish_step(stage.holder, child_lease, {"text": "report"}, [], {})
    end = stage.meanwhile(lambda conn: steps.finish_step(conn, root_lease, {"text": "bye"}, [], {}), blocks=True)
    stage.holder.commit()
    assert end.result().status is AgentStatus.RUNNING
    assert mesh.context(mesh.root)[-1][1]["text"] == "report"


# Budgets


@pytest.fixture
def two(mesh: Mesh) -> tuple[Lease, Lease]:
    """Two agents in the middle of their turns, in a session whose budget has room for one more call."""
    leases = []
    for name in ("a", "b"):
        call = mesh.call(mesh.fork(mesh.root, name, "work"), "bash")[0]
        mesh.finish(call)
        leases.append(mesh.lease(call.agent_id))
    mesh.conn.execute("insert into agentmesh.model_bills (model) values ('demo/demo') on conflict do nothing")
    mesh.conn.execute("update agentmesh.sessions set max_tokens = 3000")
    return leases[0], leases[1]


LONG = steps.Planned(answer_tokens=2500)


def begins(conn: psycopg.Connection, lease: Lease) -> steps.Granted:
    """Begin a step whose answer may be long."""
    return steps.begin_step(conn, lease, 2**62, planned=LONG).granted


def test_a_call_that_is_begun_meanwhile_sees_what_is_reserved(mesh: Mesh, stage: Stage, two: tuple[Lease, Lease]):
    assert begins(stage.holder, two[0]).answer_tokens == 2500
    other = stage.meanwhile(lambda conn: begins(conn, two[1]), blocks=True)
    stage.holder.commit()
    assert other.result().waits == "room"


def test_a_reservation_rolled_back_makes_room(stage: Stage, two: tuple[Lease, Lease]):
    begins(stage.holder, two[0])
    other = stage.meanwhile(lambda conn: begins(conn, two[1]), blocks=True)
    stage.holder.rollback()
    assert other.result().answer_tokens == 2500


def test_the_end_of_a_step_waits_for_nobody_who_begins_one(mesh: Mesh, stage: Stage, two: tuple[Lease, Lease]):
    begins(mesh.conn, two[1])
    mesh.conn.execute("update agentmesh.sessions set max_tokens = 100000")
    begins(stage.holder, two[0])
    usage = {"input_tokens": 10, "output_tokens": 5}
    end = stage.meanwhile(lambda conn: steps.finish_step(conn, two[1], {"text": "x"}, [], usage), blocks=False)
    stage.holder.commit()
    assert end.result().status is AgentStatus.IDLE


def test_who_settles_while_a_call_begins_to_wait_for_it_tells_it(mesh: Mesh, stage: Stage, two: tuple[Lease, Lease]):
    """Neither sees the other's uncommitted row, so a call that waits locks the reservation until it can be seen."""
    begins(mesh.conn, two[0])
    assert begins(stage.holder, two[1]).waits == "room"
    channel = f"agent_event_{two[1].agent_id}"
    with psycopg.connect(mesh.url, autocommit=True) as ears:
        ears.execute(f'listen "{channel}"')
        end = stage.meanwhile(lambda conn: steps.finish_step(conn, two[0], {"text": "x"}, [], {}), blocks=True)
        stage.holder.commit()
        end.result()
        assert [heard.payload for heard in ears.notifies(timeout=10, stop_after=1)] == ["budget"]


def test_who_begins_to_wait_while_what_it_waits_for_is_settled_looks_again(
    mesh: Mesh, stage: Stage, two: tuple[Lease, Lease]
):
    begins(mesh.conn, two[0])
    steps.finish_step(stage.holder, two[0], {"text": "x"}, [], {"input_tokens": 10, "output_tokens": 5})
    other = stage.meanwhile(lambda conn: begins(conn, two[1]), blocks=True)
    stage.holder.commit()
    assert other.result().answer_tokens == 2500


def test_a_call_that_is_settled_meanwhile_counts_once(mesh: Mesh, stage: Stage, two: tuple[Lease, Lease]):
    """It took less than was reserved for it: whoever looks sees either the one or the other."""
    begins(mesh.conn, two[0])
    steps.finish_step(stage.holder, two[0], {"text": "x"}, [], {"input_tokens": 10, "output_tokens": 5})
    mesh.conn.execute("update agentmesh.sessions set max_tokens = 200")
    refused = begins(mesh.conn, two[1]).refused
    stage.holder.commit()
    assert refused is not None
    assert "used are 0, reserved for calls that run 2,500" in refused["error"]
    refused = begins(mesh.conn, two[1]).refused
    assert refused is not None
    assert "used are 15, reserved for calls that run 0" in refused["error"]


def test_a_call_begun_in_the_instant_of_a_kill_reserves_nothing(mesh: Mesh, stage: Stage, two: tuple[Lease, Lease]):
    begins(stage.holder, two[0])
    kill = stage.meanwhile(lambda conn: agents.kill(conn, two[0].agent_id), blocks=False)
    kill.result()
    stage.holder.commit()
    assert mesh.one("select count(*) from agentmesh.in_flight") == 0
    assert begins(mesh.conn, two[1]).answer_tokens == 2500
