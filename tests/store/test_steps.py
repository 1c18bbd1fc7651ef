"""The commits of a turn: each is whole, fenced, and leaves every call with one result."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.errors import AgentBusy, Fenced, TurnInterrupted
from agentmesh.domain.states import AgentStatus
from agentmesh.store import steps, workers
from agentmesh.store.call import Lease
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

USAGE = {
    "model": "demo/x",
    "input_tokens": 100,
    "output_tokens": 20,
    "cached_tokens": 40,
    "cost_usd": 0.25,
    "latency_ms": 12,
    "first_token_ms": 3,
    "finish_reason": "stop",
}


def test_the_first_step_of_a_turn_reads_all_mail_in_order(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "first")
    mesh.send(mesh.root, a, "second")
    mesh.send(None, a, "third")
    mesh.claim()
    begun = mesh.run(steps.begin_step, mesh.lease(a), 0)
    assert [(row.seq, row.kind, row.content["text"]) for row in begun.rows] == [
        (1, "user", "first"),
        (2, "mail", "second"),
        (3, "user", "third"),
    ]
    assert begun.granted.refused is None


def test_only_rows_after_the_given_one_come_back(mesh: Mesh):
    mesh.send(None, mesh.root, "one")
    lease = mesh.begin(mesh.root)
    assert mesh.run(steps.begin_step, lease, 1).rows == []
    mesh.send(None, mesh.root, "two")
    assert [row.seq for row in mesh.run(steps.begin_step, lease, 1).rows] == [2]


def test_the_answer_its_calls_and_its_usage_are_one_commit(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    asked = [
        {"call_id": "x", "name": "bash", "arguments": '{"a": 1}'},
        {"call_id": "x", "name": "read", "arguments": "{"},
    ]
    done = mesh.run(steps.finish_step, lease, {"text": "on it"}, asked, USAGE)
    assert done.status is AgentStatus.RUNNING
    calls = mesh.run(steps.open_calls, mesh.root)
    assert [(c.seq, c.ordinal, c.call_id, c.name, c.arguments, c.status) for c in calls] == [
        (done.seq, 0, "x", "bash", '{"a": 1}', "open"),
        (done.seq, 1, "x", "read", "{", "open"),
    ]
    assert (
        mesh.one(
            "select count(distinct x) from (select xmin::text x from agentmesh.tool_calls union all"
            " select xmin::text from agentmesh.model_calls union all"
            " select xmin::text from agentmesh.transcript where kind = 'assistant') all_rows"
        )
        == 1
    )


def test_usage_is_booked_on_the_agent_and_as_a_call(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    mesh.run(steps.finish_step, lease, {"text": ""}, [], USAGE)
    mesh.run(steps.finish_step, mesh.begin(mesh.root), {"text": ""}, [], {"input_tokens": 5, "cached_tokens": 9})
    figures = mesh.conn.execute(
        "select model_calls, tokens, input_tokens, output_tokens, cached_tokens, cost_usd, unpriced_calls"
        " from agentmesh.v_agents where id = %s",
        [mesh.root],
    ).fetchone()
    assert figures is not None
    assert [float(x) for x in figures] == [2, 80, 105, 20, 45, 0.25, 1]
    models = mesh.column("select model from agentmesh.model_calls order by id")
    assert models == ["demo/x", "demo/demo"], "the agent's own where the answer names none"


def test_without_calls_the_turn_ends_idle_and_unowned(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    done = mesh.run(steps.finish_step, lease, {"text": "bye"}, [], {})
    assert done.status is AgentStatus.IDLE
    row = mesh.conn.execute("select status, worker_id, ended_seq from agentmesh.agents where id = %s", [mesh.root])
    assert row.fetchone() == ("idle", None, done.seq)


def test_an_answer_that_ends_with_unread_mail_begins_the_next_turn_in_that_commit(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    mesh.send(mesh.fork(mesh.root, "a"), mesh.root, "news")
    done = mesh.run(steps.finish_step, lease, {"text": "bye"}, [], {})
    assert done.status is AgentStatus.RUNNING
    assert mesh.unread(mesh.root) == []
    turn = mesh.conn.execute("select turn, started_turn, worker_id from agentmesh.agents where id = %s", [mesh.root])
    assert turn.fetchone() == (2, 2, mesh.worker)
    assert mesh.run(steps.begin_step, lease, done.seq).rows[0].content["text"] == "news"


def test_started_calls_are_known_to_whoever_takes_over(mesh: Mesh):
    first, _ = mesh.call(mesh.root, "bash", "read")
    mesh.run(steps.start_calls, first, [0])
    assert [call.status for call in mesh.run(steps.open_calls, mesh.root)] == ["started", "open"]


def test_a_call_keeps_its_first_result(mesh: Mesh):
    call = mesh.call(mesh.root, "read", "read")[0]
    mesh.run(steps.finish_calls, call, {0: {"output": "first"}})
    mesh.run(steps.finish_calls, call, {0: {"output": "second"}, 1: {"output": "other"}})
    results = [content["result"] for kind, content in mesh.rows(mesh.root) if kind == "tool_result"]
    assert results == [{"output": "first"}, {"output": "other"}]
    assert mesh.one("select tool_calls from agentmesh.agents where id = %s", mesh.root) == 2
    assert mesh.run(steps.open_calls, mesh.root) == []


def test_a_step_begins_with_the_results_of_the_one_before(mesh: Mesh):
    call = mesh.call(mesh.root, "read", "read")[0]
    mesh.send(None, mesh.root, "and this")
    begun = mesh.run(steps.begin_step, call, 2, {1: {"output": "b"}, 0: {"output": "a"}})
    assert [row.kind for row in begun.rows] == ["tool_result", "tool_result", "user"]
    assert [row.content["result"]["output"] for row in begun.rows[:2]] == ["a", "b"]
    again = mesh.run(steps.begin_step, call, 2, {0: {"output": "other"}})
    assert again.rows == begun.rows
    assert mesh.one("select tool_calls from agentmesh.agents where id = %s", mesh.root) == 2


def test_an_interrupted_turn_keeps_the_results_with_which_a_step_would_have_begun(mesh: Mesh):
    call = mesh.call(mesh.root, "read")[0]
    mesh.interrupt(mesh.root)
    with pytest.raises(TurnInterrupted):
        mesh.run(steps.begin_step, call, 2, {0: {"output": "found"}})
    assert mesh.rows(mesh.root)[-1][1]["result"] == {"output": "found"}


@pytest.mark.parametrize(("started", "flushed"), [(False, "off"), (True, "on")])
def test_only_results_of_calls_that_had_no_effect_may_be_forgotten(mesh: Mesh, started: bool, flushed: str):
    call = mesh.call(mesh.root, "bash")[0]
    if started:
        mesh.run(steps.start_calls, call, [0])
    with mesh.conn.transaction():
        mesh.conn.execute("set local synchronous_commit = on")
        steps.begin_step(mesh.conn, call, 2, {0: {"output": "x"}})
        assert mesh.one("show synchronous_commit") == flushed


def test_no_answer_is_stored_while_calls_have_no_result(mesh: Mesh):
    call = mesh.call(mesh.root, "read")[0]
    with pytest.raises(AgentBusy, match="have no result"):
        mesh.run(steps.finish_step, call, {"text": "done"}, [], {})
    assert [kind for kind, _ in mesh.rows(mesh.root)] == ["user", "assistant"]


def test_a_started_call_that_is_done_cannot_start_again(mesh: Mesh):
    call = mesh.call(mesh.root, "bash")[0]
    mesh.finish(call)
    mesh.run(steps.start_calls, call, [0])
    assert mesh.one("select status from agentmesh.tool_calls") == "done"


def test_results_of_a_call_that_does_not_exist_are_dropped(mesh: Mesh):
    call = mesh.call(mesh.root, "read")[0]
    mesh.run(steps.finish_calls, call, {7: {"output": "?"}})
    assert [kind for kind, _ in mesh.rows(mesh.root)] == ["user", "assistant"]


def test_a_failed_turn_ends_with_an_error_row_and_every_call_answered(mesh: Mesh):
    call = mesh.call(mesh.root, "bash")[0]
    status = mesh.run(steps.fail_turn, mesh.lease(mesh.root), {"error": "no disk", "hint": "free some"}, USAGE)
    assert status is AgentStatus.IDLE
    assert mesh.result(call) == {"error": "no disk"}
    assert mesh.rows(mesh.root)[-1] == ("error", {"error": "no disk", "hint": "free some"})
    assert mesh.one("select model_calls from agentmesh.agents where id = %s", mesh.root) == 2


def test_a_failed_turn_with_unread_mail_goes_on_with_it(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    mesh.send(mesh.fork(mesh.root, "a"), mesh.root, "news")
    assert mesh.run(steps.fail_turn, lease, {"error": "x"}) is AgentStatus.RUNNING


def test_a_stop_nobody_asked_for_changes_nothing(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    before = mesh.rows(mesh.root)
    assert mesh.run(steps.stop_turn, lease, {"text": "half"}) is AgentStatus.RUNNING
    assert mesh.rows(mesh.root) == before


def test_a_turn_with_nothing_to_answer_is_skipped(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    assert mesh.run(steps.skip_turn, lease) is AgentStatus.IDLE
    assert [kind for kind, _ in mesh.rows(mesh.root)] == ["user"]


def test_every_write_of_a_worker_that_lost_the_agent_is_refused(mesh: Mesh):
    lease = mesh.call(mesh.root, "bash")[0]
    mesh.run(workers.release, mesh.worker)
    other = mesh.join()
    mesh.claim(worker=other)
    before = mesh.rows(mesh.root)
    stale = [lease, Lease(mesh.root, other, lease.epoch), Lease(mesh.root, mesh.worker, mesh.lease(mesh.root).epoch)]
    writes: list[tuple[Any, ...]] = [
        (steps.begin_step, 0),
        (steps.finish_step, {"text": "late"}, [], {}),
        (steps.finish_step, {"text": "late"}, [{"call_id": "1", "name": "x", "arguments": ""}], {}),
        (steps.start_calls, [0]),
        (steps.finish_calls, {0: {}}),
        (steps.fail_turn, {"error": "late"}),
        (steps.stop_turn,),
        (steps.skip_turn,),
    ]
    for old in stale:
        for function, *arguments in writes:
            with pytest.raises(Fenced):
                mesh.run(function, old, *arguments)
    assert mesh.rows(mesh.root) == before
    assert len(mesh.run(steps.open_calls, mesh.root)) == 1


def test_a_person_can_take_back_mail_until_it_is_read(mesh: Mesh):
    mail = mesh.send(None, mesh.root, "oops")
    mesh.conn.execute("update agentmesh.mail set withdrawn_at = now() where id = %s", [mail])
    mesh.claim()
    assert mesh.run(steps.begin_step, mesh.lease(mesh.root), 0).rows == []
    assert mesh.run(steps.skip_turn, mesh.lease(mesh.root)) is AgentStatus.IDLE


def test_each_mail_is_one_row_of_its_reader(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mails = [mesh.send(None, a, str(n)) for n in range(3)]
    mesh.begin(a)
    rows = mesh.conn.execute("select id, read_seq from agentmesh.mail where recipient = %s order by id", [a]).fetchall()
    assert rows == [(mail, n) for n, mail in enumerate(mails, 1)]
    assert [content["mail_id"] for _, content in mesh.rows(a)] == mails


VACUUMS = (
    "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'autovacuum worker'"
)


def test_a_step_reads_no_more_after_many_others(mesh: Mesh):
    """In a young table, where PostgreSQL has no figures and guesses that there is hardly anything to read."""
    lease = mesh.begin(mesh.root)
    mesh.conn.execute("set synchronous_commit = on")  # else a dead row is not known to be dead for a while
    for _ in range(120):
        lease = _step(mesh, lease)
    much = []
    for _ in range(10):
        while mesh.one(VACUUMS):  # its snapshot keeps dead rows for as long as it lasts
            pass
        before = _entries_read(mesh)
        lease = _step(mesh, lease)
        read = {index: entries - before[index] for index, entries in _entries_read(mesh).items()}
        much.append({index: n for index, n in read.items() if n > 100})  # of bookings up to 32 are there, read twice
    assert {} in much, much


def _step(mesh: Mesh, lease: Lease) -> Lease:
    """Write the result of the call that the lease names, if any; return a lease with the next call of the model."""
    mesh.run(steps.begin_step, lease, lease.seq or 0, None if lease.seq is None else {0: {"text": "x"}})
    call = {"call_id": "x", "name": "read", "arguments": "{}"}
    return lease.call(mesh.run(steps.finish_step, lease, {"text": "on it"}, [call], {**USAGE, "cost_usd": 0}).seq)


def _entries_read(mesh: Mesh) -> dict[str, int]:
    """Return how many entries of each index were ever read."""
    mesh.conn.execute("select pg_stat_force_next_flush()")
    mesh.conn.execute("select pg_stat_clear_snapshot()")
    return dict(mesh.conn.execute("select indexrelname, idx_tup_read from pg_stat_user_indexes").fetchall())
