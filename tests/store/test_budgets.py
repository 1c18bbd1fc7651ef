"""Budgets: reserved before each model call, settled after it, exact also when many begin at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from agentmesh.domain.budgets import Budget, Cap, Unit
from agentmesh.domain.errors import BadArgument, BudgetSpent, DeadAgent, OtherSession, UnknownSession
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import budgets, person, sessions, steps, workers
from agentmesh.store.call import Lease
from tests.fixtures.blocking import Stage
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

CALL = [{"call_id": "1", "name": "x", "arguments": ""}]
USAGE = {"input_tokens": 500, "output_tokens": 100, "cached_tokens": 100, "cost_usd": 0.06, "model": "m"}


def cap(mesh: Mesh, amount: float | None, unit: str = "tokens", agent: AgentId | None = None) -> None:
    mesh.run(budgets.set_budget, mesh.session, Cap(Unit(unit), None if amount is None else Decimal(str(amount))), agent)


def budget(mesh: Mesh, agent: AgentId | None = None) -> Budget:
    return mesh.run(budgets.view, mesh.session, agent)[0]


@pytest.fixture(autouse=True)
def known(mesh: Mesh) -> None:
    """What the model bills is known, and is what was counted."""
    mesh.conn.execute("insert into agentmesh.model_bills (model) values ('demo/demo')")


SHORT = steps.Planned(answer_tokens=1000)
"""A call whose answer is at most so long."""


def begin(mesh: Mesh, agent: AgentId, planned: steps.Planned = SHORT) -> steps.Begun:
    """Begin one more step of an agent: one that runs, or is woken by mail."""
    if mesh.status(agent) == AgentStatus.IDLE:
        mesh.send(None, agent, "go on")
    if mesh.one("select worker_id from agentmesh.agents where id = %s", agent) is None:
        mesh.claim()
    return mesh.run(steps.begin_step, mesh.lease(agent), 2**62, planned=planned)


def allowed(mesh: Mesh, agent: AgentId, planned: steps.Planned = SHORT) -> int | None:
    return begin(mesh, agent, planned).granted.answer_tokens


def step(mesh: Mesh, lease: Lease, usage: dict[str, Any] = USAGE, conn: psycopg.Connection | None = None) -> Lease:
    """Let the model answer with a call, and finish that."""
    done = steps.finish_step(conn or mesh.conn, lease, {"text": ""}, CALL, usage)
    steps.finish_calls(conn or mesh.conn, lease.call(done.seq, 0), {0: {}})
    return lease


def reserved(mesh: Mesh) -> dict[str, int]:
    query = "select a.name, f.tokens from agentmesh.in_flight f join agentmesh.agents a on a.id = f.agent_id"
    return dict(mesh.conn.execute(query).fetchall())


# What is reserved


def test_a_call_reserves_its_whole_request_and_the_longest_answer(mesh: Mesh):
    mesh.send(None, mesh.root, "x" * 4000)
    mesh.claim()
    mesh.run(steps.begin_step, mesh.lease(mesh.root), 0, planned=steps.Planned(40_000, 3000))
    # 10,000 tokens that the worker has already, 1,000 and a few that came with the step, and the answer
    assert 14_000 <= reserved(mesh)["root"] <= 14_100


def test_what_was_cached_before_is_reserved_in_full(mesh: Mesh):
    step(mesh, mesh.begin(mesh.root), {**USAGE, "input_tokens": 9000, "cached_tokens": 8900})
    begin(mesh, mesh.root, steps.Planned(36_000, 1000))
    assert reserved(mesh)["root"] == 10_000


def test_an_answer_may_be_as_long_as_what_is_left(mesh: Mesh):
    cap(mesh, 5000)
    assert allowed(mesh, mesh.root, steps.Planned(4000, 8000)) == 4000
    assert reserved(mesh)["root"] == 5000


@pytest.mark.parametrize(("left", "fits"), [(1256, True), (1255, False)])
def test_a_call_is_refused_where_not_even_a_short_answer_fits(mesh: Mesh, left: int, fits: bool):
    cap(mesh, left)
    assert (begin(mesh, mesh.root, steps.Planned(4000, 8000)).granted.refused is None) == fits


def test_a_shorter_longest_answer_fits_under_a_smaller_cap(mesh: Mesh):
    cap(mesh, 1010)
    assert allowed(mesh, mesh.root, steps.Planned(4000, 10)) == 10


# What a model bills


PLAIN = steps.Planned(4000, 1000)
"""A call of 1,000 tokens, and an answer of as many."""


def learn(mesh: Mesh, planned: steps.Planned = PLAIN, **usage: Any) -> None:
    """Let the root's model bill a call."""
    begin(mesh, mesh.root, planned)
    step(mesh, mesh.lease(mesh.root), {"model": "demo/demo", "output_tokens": 100, **usage})


def test_a_model_that_bills_more_than_was_counted_is_reserved_as_much(mesh: Mesh):
    learn(mesh, steps.Planned(4000, 1000), input_tokens=3000, output_tokens=2000)
    begin(mesh, mesh.root, steps.Planned(8000, 1000))
    assert reserved(mesh)["root"] == 2000 * 3 + 1000 * 2


def test_a_model_that_bills_less_is_reserved_as_counted(mesh: Mesh):
    learn(mesh, steps.Planned(4000, 1000), input_tokens=30, output_tokens=2)
    begin(mesh, mesh.root, steps.Planned(8000, 1000))
    assert reserved(mesh)["root"] == 3000


def test_a_prompt_of_the_servers_own_is_reserved_for_short_requests_too(mesh: Mesh):
    mesh.conn.execute("delete from agentmesh.model_bills")
    learn(mesh, steps.Planned(40_000, 1000), input_tokens=15_000)
    begin(mesh, mesh.root, steps.Planned(4000, 1000))
    assert reserved(mesh)["root"] == 16_000


def test_the_price_of_a_model_in_no_list_is_learned_from_its_bills(mesh: Mesh):
    learn(mesh, input_tokens=1000, output_tokens=0, cost_usd=0.01)
    begin(mesh, mesh.root, steps.Planned(8000, 1000))
    # 2,000 tokens at 0.00001, and the answer at ten times that: no bill has shown what output costs
    assert budget(mesh).reserved_cost_usd == Decimal("0.12")


def test_where_a_list_has_the_price_it_is_the_lists_uncached_one(mesh: Mesh):
    prices: dict[str, Any] = {"input_usd": 1e-5, "cached_usd": 1e-6, "output_usd": 4e-5}
    learn(mesh, input_tokens=1000, cached_tokens=1000, output_tokens=0, cost_usd=0.001, **prices)
    begin(mesh, mesh.root, steps.Planned(8000, 1000))
    assert budget(mesh).reserved_cost_usd == Decimal("0.06")


def test_a_server_that_bills_more_than_the_list_is_reserved_as_much(mesh: Mesh):
    prices: dict[str, Any] = {"input_usd": 1e-5, "cached_usd": 1e-6, "output_usd": 4e-5}
    learn(mesh, input_tokens=1000, output_tokens=0, cost_usd=0.02, **prices)
    begin(mesh, mesh.root, steps.Planned(8000, 1000))
    assert budget(mesh).reserved_cost_usd == Decimal("0.12")


def test_a_server_that_bills_in_a_wrong_unit_stops_no_call_that_has_no_cap_in_money(mesh: Mesh):
    cap(mesh, None, "usd")
    learn(mesh, input_tokens=10, output_tokens=10, cost_usd=100_000)
    assert allowed(mesh, mesh.root, steps.Planned(400, 32_768)) == 32_768
    assert mesh.run(steps.reserve_retry, mesh.lease(mesh.root), "demo/demo", (10, 99_999_999), (10, 99_999_999))
    assert budget(mesh).reserved_cost_usd == 99_999_999


def test_what_has_cost_more_than_can_be_stored_stops_no_call(mesh: Mesh):
    cap(mesh, None, "usd")
    for _ in range(32):  # then a call moves them into one sum
        mesh.conn.execute("insert into agentmesh.bookings values (%s, 0, 99000000)", [mesh.session])
    mesh.conn.execute("update agentmesh.agents set cost_usd = 99000000")
    learn(mesh, input_tokens=10, output_tokens=10, cost_usd=1_000_000)
    assert mesh.one("select cost_usd from agentmesh.agents") == 99_999_999
    begin(mesh, mesh.root)
    assert mesh.one("select cost_usd from agentmesh.session_usage") == 99_999_999


def test_many_calls_of_less_than_half_a_millionth_are_not_free(mesh: Mesh):
    for _ in range(20):
        learn(mesh, input_tokens=10, output_tokens=10, cost_usd=4.4e-7)
    learn(mesh, input_tokens=10, output_tokens=10, cost_usd=0.1 + 0.2)
    assert budget(mesh).cost_usd == Decimal("0.30002"), "and what binary fractions lack is nothing"
    assert mesh.one("select sum(cost_usd) from agentmesh.model_calls") == Decimal("0.30002")


def test_an_unknown_price_reserves_no_money(mesh: Mesh):
    cap(mesh, 0.01, "usd")
    learn(mesh, input_tokens=1000, cost_usd=None)
    assert allowed(mesh, mesh.root, steps.Planned(8000, 1000)) == 1000
    assert budget(mesh).reserved_cost_usd == 0


def test_calls_that_used_nothing_and_partial_ones_that_nobody_counted_are_no_bills(mesh: Mesh):
    mesh.conn.execute("delete from agentmesh.model_bills")
    for usage in ({"error": "connection"}, {"input_tokens": 500, "estimated": True, "error": "cancelled"}):
        begin(mesh, mesh.root)
        mesh.run(steps.fail_turn, mesh.lease(mesh.root), {"error": "x"}, {"model": "demo/demo", **usage})
    assert mesh.column("select model from agentmesh.model_bills") == []


def test_a_call_that_is_booked_late_teaches_nothing_about_the_one_that_runs(mesh: Mesh):
    begin(mesh, mesh.root)
    mesh.run(steps.book_call, mesh.root, {"model": "demo/demo", "input_tokens": 10**6, "cost_usd": 5})
    assert mesh.one("select input_excess from agentmesh.model_bills") == 1
    assert budget(mesh).cost_usd == 5


def test_a_bill_above_its_reservation_is_told_in_the_conversation(mesh: Mesh):
    learn(mesh, steps.Planned(4000, 1000), input_tokens=30_000)
    (text,) = mesh.column(
        "select content ->> 'text' from agentmesh.transcript where content ->> 'event' = 'overbilled'"
    )
    assert text == (
        "demo/demo billed 30,100 tokens for a call that 2,000 tokens were reserved for;"
        " from now on its calls reserve as much"
    )


def test_what_a_model_billed_can_be_forgotten(mesh: Mesh):
    learn(mesh, input_tokens=10**9)
    cap(mesh, 10**6)
    refused = begin(mesh, mesh.root, PLAIN).granted.refused
    assert refused is not None
    assert "psql forgets that: select agentmesh.forget_bills('demo/demo')." in refused["hint"]
    assert mesh.one("select agentmesh.forget_bills('demo/demo')")
    assert not mesh.one("select agentmesh.forget_bills('demo/demo')")
    cap(mesh, 2 * 10**9)
    assert allowed(mesh, mesh.root) == 1000


# Waiting for others


def test_a_call_waits_while_those_of_others_leave_it_less(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    cap(mesh, 1900)
    assert allowed(mesh, a) == 1000
    assert begin(mesh, b).granted.waits == "room"
    assert reserved(mesh) == {"a": 1000}
    assert mesh.run(steps.ready, [b]) == []
    mesh.run(steps.finish_step, mesh.lease(a), {"text": "done"}, [], {"input_tokens": 10, "output_tokens": 10})
    assert mesh.run(steps.ready, [b]) == [b]
    assert allowed(mesh, b) == 1000


def test_a_call_that_waits_is_weighed_by_the_model_that_is_asked(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.conn.execute("update agentmesh.model_bills set even_usd = 0.001")
    cap(mesh, 1.9, "usd")
    dear = steps.Planned(answer_tokens=1000, model="demo/demo")
    assert begin(mesh, a, dear).granted.answer_tokens == 1000
    assert begin(mesh, b, dear).granted.waits == "room"
    mesh.run(person.set_model, b, "demo/free")
    mesh.conn.execute("set transaction read only")
    assert steps.ready(mesh.conn, [b]) == [], "the call is still one of the dear model"


def test_until_a_models_first_bill_one_call_of_a_session_goes_ahead(mesh: Mesh):
    mesh.conn.execute("delete from agentmesh.model_bills")
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    assert allowed(mesh, a) == 1000
    assert begin(mesh, b).granted.waits == "bill"
    mesh.run(steps.finish_step, mesh.lease(a), {"text": "done"}, [], {"input_tokens": 10, "output_tokens": 10})
    assert allowed(mesh, b) == 1000


def test_a_call_that_no_cap_holds_for_waits_for_nobody(mesh: Mesh):
    mesh.conn.execute("delete from agentmesh.model_bills")
    mesh.conn.execute("update agentmesh.sessions set max_tokens = null, max_cost_usd = null")
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    cap(mesh, 100_000, agent=a)
    begin(mesh, a)
    assert allowed(mesh, b) == 1000


def test_whose_call_waits_takes_no_place_of_a_worker_and_is_not_stuck(mesh: Mesh):
    mesh.conn.execute("delete from agentmesh.model_bills")
    mesh.conn.execute("update agentmesh.workers set concurrency = 2")
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    begin(mesh, a)
    begin(mesh, b)
    assert mesh.one("select agentmesh.has_room(w) from agentmesh.workers w")
    mesh.conn.execute("update agentmesh.agents set queued_at = now() - interval '1 h'")
    mesh.conn.execute("update agentmesh.workers set started_at = now() - interval '1 h'")
    mesh.conn.execute("update agentmesh.transcript set created_at = now() - interval '1 h'")
    stuck = mesh.conn.execute(
        "select name, problem from agentmesh.v_stuck where problem = 'no sign of life'"
    ).fetchall()
    assert stuck == [("a", "no sign of life")]


def test_calls_of_the_dead_are_not_told_in_place_of_those_that_wait(mesh: Mesh):
    """A kill may meet a step that begins: what it reserves then is void, and stays."""
    mesh.conn.execute("delete from agentmesh.model_bills")
    mesh.conn.execute("update agentmesh.sessions set max_children = 64, max_agents = 64")
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    begin(mesh, a)
    begin(mesh, b)
    mesh.conn.execute(
        "insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd, waits, at)"
        " select gen_random_uuid(), %s, 1, 0, 0, true, now() - interval '1 h' from generate_series(1, 20)",
        [mesh.session],
    )
    with psycopg.connect(mesh.url, autocommit=True) as ears:
        ears.execute(f'listen "agent_event_{b}"')
        mesh.run(steps.finish_step, mesh.lease(a), {"text": "done"}, [], {"input_tokens": 10, "output_tokens": 10})
        assert "budget" in [heard.payload for heard in ears.notifies(timeout=10, stop_after=1)]
    mesh.conn.execute("delete from agentmesh.reservations where at < now() - interval '1 min'")


def test_a_first_call_is_reserved_at_the_listed_price(mesh: Mesh):
    mesh.conn.execute("delete from agentmesh.model_bills")
    cap(mesh, 0.5, "usd")
    listed = steps.Planned(40_000, 1000, input_usd=1e-5, output_usd=1e-4)
    agent = mesh.fork(mesh.root, "a", "work")
    assert allowed(mesh, agent, listed) == 1000
    (of,) = mesh.run(budgets.view, mesh.session)
    assert of.reserved_cost_usd == Decimal("0.2")
    cap(mesh, 0.15, "usd")
    assert allowed(mesh, agent, listed) == 500, "as long as what is left"
    cap(mesh, 0.1, "usd")
    assert begin(mesh, agent, listed).granted.refused is not None


def test_a_call_that_could_not_fit_even_alone_waits_for_nobody(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    cap(mesh, 1900)
    begin(mesh, a)
    assert begin(mesh, b, steps.Planned(8000, 1000)).granted.refused is not None


def test_where_nothing_is_capped_nothing_is_reserved(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_tokens = null, max_cost_usd = null")
    step(mesh, mesh.begin(mesh.root))
    assert begin(mesh, mesh.root).granted == steps.Granted(None, None, None)
    assert mesh.column("select agent_id from agentmesh.reservations") == []
    assert mesh.column("select session_id from agentmesh.session_usage") == []
    # A cap that comes later counts what was used before.
    cap(mesh, 700)
    assert begin(mesh, mesh.root).granted.refused is not None


# When it is free again


def ends(mesh: Mesh, how: str, lease: Lease) -> None:
    match how:
        case "answered":
            mesh.run(steps.finish_step, lease, {"text": "done"}, [], USAGE)
        case "goes on":
            mesh.run(steps.finish_step, lease, {"text": ""}, CALL, USAGE)
        case "failed":
            mesh.run(steps.fail_turn, lease, {"error": "x"}, USAGE)
        case "interrupted":
            mesh.interrupt(lease.agent_id)
            mesh.run(steps.stop_turn, lease, {"text": "so"}, USAGE)
        case "nothing to answer":
            mesh.run(steps.skip_turn, lease)
        case "killed":
            mesh.kill(lease.agent_id)
        case "its worker died":
            mesh.run(workers.release, mesh.worker)
        case "the session ended":
            mesh.run(sessions.end_session, mesh.session)


def test_what_was_reserved_just_as_its_agent_died_stays_only_until_it_matters(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    lease = mesh.begin(a)  # its mail is read: the next begin locks no agent
    mesh.conn.execute("delete from agentmesh.reservations")
    steps.begin_step(stage.holder, lease, 2**62, planned=SHORT)
    mesh.kill(a)
    stage.holder.commit()
    left = "select a.name from agentmesh.reservations r join agentmesh.agents a on a.id = r.agent_id"
    assert mesh.column(left) == ["a"]
    cap(mesh, 800)
    assert (allowed(mesh, b) or 0) in range(1, 1000)
    assert mesh.column(left) == ["b"]


ENDS = [
    "answered",
    "goes on",
    "failed",
    "interrupted",
    "nothing to answer",
    "killed",
    "its worker died",
    "the session ended",
]


@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_a_call_frees_what_was_reserved_for_it(mesh: Mesh, how: str):
    child = mesh.fork(mesh.root, "child", "work")
    lease = mesh.begin(child)
    assert "child" in reserved(mesh)
    ends(mesh, how, lease)
    assert reserved(mesh) == {}
    assert budget(mesh).reserved_tokens == 0
    assert budget(mesh).tokens == (500 if how in ENDS[:4] else 0)
    assert violations(mesh.conn) == []


def test_who_takes_over_reserves_anew(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    mesh.begin(child)
    mesh.run(workers.release, mesh.worker)
    mesh.worker = mesh.join()
    mesh.begin(child)
    assert list(reserved(mesh)) == ["child"]


def test_a_step_that_is_begun_twice_reserves_once(mesh: Mesh):
    mesh.begin(mesh.root)
    begin(mesh, mesh.root)
    cap(mesh, reserved(mesh)["root"])
    assert allowed(mesh, mesh.root) == 1000


def test_what_is_booked_after_death_is_owed_and_frees_nothing_of_others(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    lease = mesh.begin(a)
    mesh.begin(b)
    mesh.kill(a)
    mesh.run(steps.book_call, lease.agent_id, USAGE)
    assert list(reserved(mesh)) == ["b"]
    assert budget(mesh).tokens == 500


def test_an_erased_session_leaves_nothing_behind(mesh: Mesh):
    step(mesh, mesh.begin(mesh.root))
    begin(mesh, mesh.root)
    mesh.run(sessions.end_session, mesh.session)
    mesh.run(sessions.delete_session, mesh.session)
    for table in ("reservations", "bookings", "session_usage"):
        assert mesh.one(f"select count(*) from agentmesh.{table}") == 0


# Refusals


def test_the_refusal_has_cap_figures_and_the_way_on(mesh: Mesh):
    cap(mesh, 2000)
    step(mesh, mesh.begin(mesh.root), {})
    step(mesh, mesh.lease(mesh.root))
    cap(mesh, 700)
    refused = begin(mesh, mesh.root).granted.refused
    assert refused is not None
    assert "root (" in refused["error"]
    assert "the budget of the session, 700 tokens: used are 500, reserved for calls that run 0" in refused["error"]
    assert "Do not retry" in refused["hint"]
    assert "agentmesh budget AMOUNT" in refused["hint"]
    assert "/budget AMOUNT" in refused["hint"]


def test_a_refusal_shows_amounts_below_a_cent_of_a_cent(mesh: Mesh):
    mesh.run(budgets.set_budget, mesh.session, Cap(Unit.USD, Decimal("0.000012")))
    refused = begin(mesh, mesh.root, steps.Planned(answer_tokens=1000, input_usd=1e-9, output_usd=5e-8)).granted.refused
    assert refused is not None
    assert "0.000012 USD: used are 0.0000, reserved for calls that run 0.0000" in refused["error"]
    assert "takes at least 0.000013" in refused["error"]


def test_what_others_reserved_counts(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    begin(mesh, a)
    cap(mesh, 1500)
    mesh.run(steps.skip_turn, mesh.lease(a))
    begin(mesh, b)
    assert list(reserved(mesh)) == ["b"]
    assert begin(mesh, a).granted.waits == "room"
    assert list(reserved(mesh)) == ["b"]
    cap(mesh, 200)
    refused = begin(mesh, a).granted.refused
    assert refused is not None
    assert "used are 0, reserved for calls that run 1,000, and this one takes at least 256" in refused["error"]


@pytest.mark.parametrize("of_agent", [False, True])
def test_another_attempt_is_reserved_beside_what_the_lost_ones_used(mesh: Mesh, of_agent: bool):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    cap(mesh, 3000, agent=mesh.root if of_agent else None)
    begin(mesh, a)
    begin(mesh, b)
    lease = mesh.lease(a)
    assert mesh.run(steps.reserve_retry, lease, "demo/demo", (700, None), (700, None))
    assert reserved(mesh) == {"a": 1700, "b": 1000}
    assert not mesh.run(steps.reserve_retry, lease, "demo/demo", (301, None), (1001, None)), (
        "with b's call it would not fit"
    )
    assert reserved(mesh) == {"a": 1700, "b": 1000}
    assert mesh.run(steps.reserve_retry, lease, "demo/demo", (300, None), (1000, None))


def test_another_attempt_of_unknown_price_needs_as_much_as_the_last_one_cost(mesh: Mesh):
    cap(mesh, 0.25, "usd")
    begin(mesh, mesh.root)
    lease = mesh.lease(mesh.root)
    assert mesh.run(steps.reserve_retry, lease, "demo/demo", (10, 0.1), (10, 0.1))
    assert budget(mesh).reserved_cost_usd == Decimal("0.2")
    assert not mesh.run(steps.reserve_retry, lease, "demo/demo", (10, 0.1), (20, 0.2))


BILLS = "update agentmesh.model_bills set input_excess = 4, output_excess = 2, least_input = 10, even_usd = 0.001"
COUNTED = [
    ({"input_tokens": 40, "output_tokens": 60, "estimated": False}, Decimal("0.1")),
    ({"input_tokens": 10, "output_tokens": 60, "estimated": True}, Decimal("0.1")),
    ({"input_tokens": 1, "output_tokens": 0, "estimated": True}, Decimal("0.01")),
]
"""Attempts of unknown cost, and what they cost at most by the bills. Only a request that we count has an excess."""


@pytest.mark.parametrize(("attempt", "usd"), COUNTED)
def test_an_attempt_of_unknown_cost_is_booked_at_what_its_tokens_can_have_cost(
    mesh: Mesh, attempt: dict[str, Any], usd: Decimal
):
    mesh.conn.execute(BILLS)
    begin(mesh, mesh.root)
    step(mesh, mesh.lease(mesh.root), {**USAGE, **attempt, "model": "demo/demo", "cost_usd": 1, "unpriced": [attempt]})
    assert budget(mesh).cost_usd == 1 + usd


@pytest.mark.parametrize(("attempt", "usd"), COUNTED)
def test_an_attempt_of_unknown_cost_stays_reserved_at_what_it_is_booked_at(
    mesh: Mesh, attempt: dict[str, Any], usd: Decimal
):
    mesh.conn.execute(BILLS)
    cap(mesh, 100, "usd")
    begin(mesh, mesh.root)
    first = budget(mesh).reserved_cost_usd
    assert mesh.run(steps.reserve_retry, mesh.lease(mesh.root), "demo/demo", (100, None), (100, None), [attempt])
    assert budget(mesh).reserved_cost_usd == first + usd


def test_another_attempt_without_a_reservation_of_its_own_is_held_by_no_cap(mesh: Mesh):
    cap(mesh, None)
    mesh.run(budgets.set_budget, mesh.session, Cap(None, None))
    begin(mesh, mesh.root)
    assert mesh.run(steps.reserve_retry, mesh.lease(mesh.root), "demo/demo", (10**9, None), (10**9, None))


def test_a_bill_is_that_of_the_last_attempt_and_all_are_booked(mesh: Mesh):
    cap(mesh, 10_000)
    mesh.conn.execute("update agentmesh.model_bills set least_input = 600, least_usd = 0.06, input_excess = 10")
    begin(mesh, mesh.root)
    earlier = {"input_tokens": 1000, "output_tokens": 200, "cached_tokens": 200, "cost_usd": 0.12}
    used = {"input_tokens": 1500, "output_tokens": 300, "cached_tokens": 300, "cost_usd": 0.18, "model": "demo/demo"}
    step(mesh, mesh.lease(mesh.root), {**used, "earlier": earlier})
    assert (budget(mesh).tokens, budget(mesh).cost_usd) == (1500, Decimal("0.18"))
    assert mesh.one("select least_input from agentmesh.model_bills") == 500


def test_a_cap_on_an_agent_holds_for_all_below_it_and_for_nobody_else(mesh: Mesh):
    team = mesh.fork(mesh.root, "team", "work")
    child = mesh.fork(team, "child", "work")
    clean = mesh.fork(child, "clean", "work")
    mesh.conn.execute("update agentmesh.agents set clean = true, forked_at = 0 where id = %s", [clean])
    cap(mesh, 700, agent=team)
    step(mesh, mesh.begin(child))
    for agent in (team, child, clean):
        mesh.begin(agent)
        refused = begin(mesh, agent).granted.refused
        assert refused is not None
        assert "700 tokens: used are 500" in refused["error"]
        assert "agentmesh budget team AMOUNT" in refused["hint"]
    assert "its own, 700" in str(begin(mesh, team).granted.refused)
    assert "of team (" in str(begin(mesh, child).granted.refused)
    mesh.begin(mesh.root)
    assert begin(mesh, mesh.root).granted.refused is None
    assert budget(mesh, team).tokens == 500
    cap(mesh, None, agent=team)
    assert begin(mesh, child).granted.refused is None


def test_calls_below_a_capped_agent_share_what_is_left(mesh: Mesh):
    team = mesh.fork(mesh.root, "team", "work")
    a, b = mesh.fork(team, "a", "work"), mesh.fork(team, "b", "work")
    cap(mesh, 1500, agent=team)
    begin(mesh, a)
    assert begin(mesh, b).granted.waits == "room"
    assert list(reserved(mesh)) == ["a"]
    assert budget(mesh, team).reserved_tokens == reserved(mesh)["a"]


def test_money_is_capped_too(mesh: Mesh):
    cap(mesh, 0.1, "usd")
    step(mesh, mesh.begin(mesh.root), {**USAGE, "model": "demo/demo"})
    refused = begin(mesh, mesh.root).granted.refused
    assert refused is not None
    assert "the session, 0.1000 USD: used are 0.0600" in refused["error"]
    cap(mesh, 1, "usd")
    assert begin(mesh, mesh.root).granted.refused is None


def test_a_cap_that_is_reached_refuses_calls_of_unknown_price_too(mesh: Mesh):
    step(mesh, mesh.begin(mesh.root), {**USAGE, "cost_usd": 1})
    step(mesh, mesh.lease(mesh.root), {**USAGE, "cost_usd": None})
    cap(mesh, 1, "usd")
    assert begin(mesh, mesh.root).granted.refused is not None


def test_a_cap_in_money_counts_known_cost_only(mesh: Mesh):
    cap(mesh, 0.01, "usd")
    step(mesh, mesh.begin(mesh.root), {**USAGE, "cost_usd": None})
    assert begin(mesh, mesh.root).granted.refused is None
    assert budget(mesh).unpriced_calls == 1


def test_fork_is_refused_by_the_same_rule(mesh: Mesh):
    team = mesh.fork(mesh.root, "team", "work")
    cap(mesh, 500, agent=team)
    step(mesh, mesh.begin(team))
    with pytest.raises(BudgetSpent, match="500 tokens") as refused:
        mesh.fork(team, "more")
    assert "agentmesh budget team AMOUNT" in refused.value.hint
    mesh.fork(mesh.root, "elsewhere")


def test_a_turn_that_was_refused_goes_on_by_retry_when_the_budget_is_raised(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    cap(mesh, 10)
    lease = mesh.begin(child)
    refused = begin(mesh, child).granted.refused
    assert refused is not None
    assert mesh.run(steps.fail_turn, lease, {**refused, "kind": "limit"}) is AgentStatus.IDLE
    cap(mesh, None)
    mesh.run(person.retry, child)
    mesh.claim()
    assert begin(mesh, child).granted.refused is None


# Setting


def test_caps_are_set_one_by_one_and_taken_away_together(mesh: Mesh):
    cap(mesh, 5, "usd")
    cap(mesh, 1000)
    assert (budget(mesh).max_tokens, budget(mesh).max_cost_usd) == (1000, Decimal(5))
    mesh.run(budgets.set_budget, mesh.session, Cap(None, None))
    assert (budget(mesh).max_tokens, budget(mesh).max_cost_usd) == (None, None)


def test_a_cap_on_an_agent_is_told_in_its_conversation(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    cap(mesh, 2.50, "usd", child)
    cap(mesh, None, "usd", child)
    texts = [content["text"] for kind, content in mesh.rows(child) if kind == "event"]
    assert texts == ["budget of child and all below it: 2.5 USD", "budget of child and all below it: no cap in USD"]
    assert mesh.context(child) == []
    assert mesh.run(budgets.view, mesh.session, child) == []


@pytest.mark.parametrize("amount", [-1, 1e16, float("nan")])
def test_amounts_out_of_range_are_refused(mesh: Mesh, amount: float):
    with pytest.raises(BadArgument, match="out of range"):
        cap(mesh, amount)


@pytest.mark.parametrize(
    ("unit", "amount"), [("usd", "0.0000004"), ("tokens", "0.4"), ("usd", "0.0000005"), ("tokens", "0.5")]
)
def test_a_cap_of_less_than_the_least_is_refused(mesh: Mesh, unit: str, amount: str):
    with pytest.raises(BadArgument, match="less than the least"):
        mesh.run(lambda conn: conn.execute("select agentmesh.set_budget(%s, %s, %s)", [mesh.session, unit, amount]))


def test_a_unit_that_nobody_knows_is_refused(mesh: Mesh):
    with pytest.raises(BadArgument, match="'eur' is no unit"):
        mesh.run(lambda conn: conn.execute("select agentmesh.set_budget(%s, 'eur', 5)", [mesh.session]))


def test_whose_budget_it_is_must_exist_live_and_belong_to_the_session(mesh: Mesh):
    dead = mesh.fork(mesh.root, "dead")
    mesh.kill(dead)
    with pytest.raises(DeadAgent):
        cap(mesh, 5, agent=dead)
    with pytest.raises(OtherSession):
        cap(mesh, 5, agent=mesh.new_session())
    mesh.session = SessionId(mesh.one("select gen_random_uuid()"))
    with pytest.raises(UnknownSession):
        cap(mesh, 5)


# Looking


def test_costs_by_agent_model_and_day(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    step(mesh, mesh.begin(child))
    step(mesh, mesh.begin(mesh.root), {**USAGE, "model": "free", "cost_usd": None})
    by_agent = mesh.run(budgets.costs, mesh.session, "agent")
    assert [(line.what, line.calls, line.tokens, line.cost_usd) for line in by_agent] == [
        ("child", 1, 500, Decimal("0.06")),
        ("root", 1, 500, None),
    ]
    assert [line.what for line in mesh.run(budgets.costs, mesh.session, "model")] == ["m", "free"]
    (day,) = mesh.run(budgets.costs, mesh.session, "day")
    assert (day.calls, day.input_tokens, day.cached_tokens, day.output_tokens) == (2, 1000, 200, 200)
    assert (day.cost_usd, day.unpriced_calls) == (Decimal("0.06"), 1)


# At once


def working(mesh: Mesh, count: int) -> list[Lease]:
    """Return agents in the middle of their turns, each with one call of 500 tokens behind it."""
    mesh.conn.execute("update agentmesh.sessions set max_children = 100, max_tokens = null, max_cost_usd = null")
    children = [mesh.fork(mesh.root, f"child-{n}", "work") for n in range(count)]
    return [step(mesh, mesh.begin(child)) for child in children]


def in_threads(url: str, leases: list[Lease], call: Any) -> list[Any]:
    """Call with a connection and a lease each, all at the same moment."""
    barrier = threading.Barrier(len(leases))

    def one(lease: Lease) -> Any:
        with psycopg.connect(url, autocommit=True) as conn:
            barrier.wait()
            return call(conn, lease)

    with ThreadPoolExecutor(len(leases)) as threads:
        return list(threads.map(one, leases))


@pytest.mark.parametrize("of_agent", [False, True])
def test_of_ten_agents_that_call_at_once_exactly_as_many_may_as_fit(mesh: Mesh, database_url: str, of_agent: bool):
    leases = working(mesh, 10)
    cap(mesh, 5000 + 3 * 1000 + 900, agent=mesh.root if of_agent else None)
    begun = in_threads(database_url, leases, lambda conn, lease: steps.begin_step(conn, lease, 2**62, planned=SHORT))
    assert [one.granted.waits for one in begun].count("room") == 7
    assert reserved(mesh).keys() <= {f"child-{n}" for n in range(10)}
    assert list(reserved(mesh).values()) == [1000] * 3


def test_ten_agents_that_work_until_refused_stay_below_the_cap(mesh: Mesh, database_url: str):
    leases = working(mesh, 10)
    cap(mesh, 25_000)

    def work(conn: psycopg.Connection, lease: Lease) -> int:
        done = 0
        while (granted := steps.begin_step(conn, lease, 2**62, planned=SHORT).granted).refused is None:
            if granted.waits is None:
                step(mesh, lease, {**USAGE, "input_tokens": 1000}, conn)
                done += 1
        return done

    done = in_threads(database_url, leases, work)
    assert sum(done) >= 10
    assert budget(mesh).tokens == 5000 + 1000 * sum(done)
    assert budget(mesh).tokens <= 25_000
    assert violations(mesh.conn) == []


# What a fan-out would reserve


def starts(**more: Any) -> dict[str, Any]:
    known = {"model": "demo/demo", "agents": 1, "bytes": 4000, "answer": 1000, "input_usd": None, "output_usd": None}
    return {**known, **more}


@pytest.mark.parametrize("price", [(None, None), (0.00001, 0.0001)])
def test_the_estimate_of_a_fan_out_is_what_a_call_reserves(mesh: Mesh, price: tuple[float | None, float | None]):
    learn(mesh, input_usd=price[0], cached_usd=price[0], output_usd=price[1])
    planned = {"input_usd": price[0], "output_usd": price[1]}
    one = mesh.run(budgets.fan_out_estimate, mesh.root, [starts(**planned)])
    begin(mesh, mesh.root, steps.Planned(4000, 1000, *price))
    (found,) = mesh.conn.execute("select tokens, cost_usd from agentmesh.reservations").fetchall()
    assert one.tokens == found[0]
    if price[0]:
        assert one.usd == found[1]
    many = mesh.run(budgets.fan_out_estimate, mesh.root, [starts(agents=3, **planned), starts(agents=2, **planned)])
    assert many.tokens == 5 * one.tokens


def test_the_estimate_names_the_cap_with_the_least_room(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    cap(mesh, 50_000)
    cap(mesh, 20_000, agent=child)
    cap(mesh, None, "usd")
    cap(mesh, 3, "usd", agent=child)
    begin(mesh, mesh.root, steps.Planned(0, 1000))
    of_root = mesh.run(budgets.fan_out_estimate, mesh.root, [starts()])
    of_child = mesh.run(budgets.fan_out_estimate, child, [starts()])
    assert (of_root.max_tokens, of_root.left_tokens, of_root.max_usd) == (50_000, 50_000, None)
    assert (of_child.max_tokens, of_child.left_tokens) == (20_000, 20_000)
    assert of_child.max_usd == of_child.left_usd == 3


def test_a_price_that_is_not_known_of_one_model_is_not_known_of_all(mesh: Mesh):
    free, unknown = starts(input_usd=0, output_usd=0), starts(model="demo/new")
    assert mesh.run(budgets.fan_out_estimate, mesh.root, [free]).usd == 0
    assert mesh.run(budgets.fan_out_estimate, mesh.root, [free, unknown]).usd is None


def test_bills_are_those_of_a_server_not_of_all_that_have_a_model_of_that_name(mesh: Mesh):
    dear, cheap = (steps.Planned(answer_tokens=1000, address=f"https://{name}.example") for name in ("dear", "cheap"))
    mesh.conn.execute("delete from agentmesh.model_bills")
    cap(mesh, 100, "usd")
    for planned, usd in ((dear, 10), (cheap, 0.001)):
        begin(mesh, mesh.root, planned)
        step(mesh, mesh.lease(mesh.root), {**USAGE, "cost_usd": usd, "model": "demo/demo"})
    least = "select least_usd from agentmesh.model_bills where address = %s"
    assert [mesh.one(least, planned.address) for planned in (dear, cheap)] == [10, Decimal("0.001")]
    reserved = []
    for planned in (dear, cheap):
        begin(mesh, mesh.root, planned)
        reserved.append(budget(mesh).reserved_cost_usd)
    assert reserved[0] >= 10
    assert reserved[1] < 1


def test_a_call_is_reserved_by_the_model_that_is_asked_not_by_that_of_the_next_turn(mesh: Mesh):
    mesh.conn.execute("update agentmesh.model_bills set even_usd = 0.001")
    cap(mesh, 1, "usd")
    begin(mesh, mesh.root)
    mesh.run(person.set_model, mesh.root, "demo/free")
    asked = steps.Planned(answer_tokens=900, model="demo/demo")
    assert begin(mesh, mesh.root, asked).granted.answer_tokens == 900
    assert budget(mesh).reserved_cost_usd == Decimal("0.9")
    attempt = {"input_tokens": 50, "output_tokens": 50, "estimated": False}
    assert mesh.run(steps.reserve_retry, mesh.lease(mesh.root), "demo/demo", (100, None), (100, None), [attempt])
    assert budget(mesh).reserved_cost_usd == 1
    refused = begin(mesh, mesh.root, steps.Planned(4000, 1000, model="demo/demo")).granted.refused
    assert refused is not None
    assert "this one takes at least 1.256" in refused["error"]


def test_a_child_is_refused_by_the_smallest_bill_of_its_model_at_any_server(mesh: Mesh):
    mesh.conn.execute("update agentmesh.model_bills set address = 'https://dear.example', least_usd = 5")
    cap(mesh, 1, "usd")
    with pytest.raises(BudgetSpent):
        mesh.fork(mesh.root, "a", "work")
    mesh.conn.execute("insert into agentmesh.model_bills (model, address) values ('demo/demo', 'https://free.example')")
    mesh.fork(mesh.root, "a", "work")


def test_a_child_is_refused_only_if_no_server_of_its_model_has_ever_billed_so_little(mesh: Mesh):
    mesh.conn.execute("update agentmesh.model_bills set address = 'https://long.example', least_input = 50000")
    dear = (
        "insert into agentmesh.model_bills (model, address, least_usd) values ('demo/demo', 'https://dear.example', 1)"
    )
    mesh.conn.execute(dear)
    cap(mesh, 10_000)
    mesh.fork(mesh.root, "a", "work")
