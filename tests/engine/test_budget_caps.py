"""Caps hold whatever a model bills, however many call at once: the table in docs/explanation/budgets.md, measured."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from agentmesh.domain.budgets import Budget, Cap, Unit
from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.profiles import find_profile
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.store import budgets, mailbox
from tests.fixtures.engine import Rig, call, say, when
from tests.llm.misbehaving import cut, hanging, misbehaving, stream, text

EACH: dict[str, Any] = {"usage": Usage(input_tokens=20_000, output_tokens=2_000), "cost_usd": 0.10}
"""What a model reports for each call, whatever it was sent."""


@pytest.fixture
def new(rig: Rig) -> Rig:
    """A session whose model has billed nothing yet; its server reports cost."""
    rig.conn.execute("delete from agentmesh.model_bills")
    rig.model.profile = find_profile("openrouter")
    return rig


def cap(rig: Rig, usd: str | None, tokens: int | None = None) -> None:
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.db.run(budgets.set_budget, session, Cap(None, None))
    if usd is not None:
        rig.db.run(budgets.set_budget, session, Cap(Unit.USD, Decimal(usd)))
    if tokens is not None:
        rig.db.run(budgets.set_budget, session, Cap(Unit.TOKENS, Decimal(tokens)))


def spent(rig: Rig) -> Budget:
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    return rig.db.run(budgets.view, session)[0]


def crowd(rig: Rig, names: list[str], *replies: ScriptedReply) -> None:
    """Let forks of the root have something to do."""
    for name in names:
        rig.script(name, *replies)
        rig.fork(name)
    for name in names:
        rig.prompt("work", name)


def waiting(rig: Rig) -> int:
    return int(rig.one("select count(*) from agentmesh.reservations where waits"))


# The cases of the table


def test_thirty_forks_before_the_roots_first_call(new: Rig):
    new.conn.execute("update agentmesh.sessions set max_children = 64, max_agents = 64")
    cap(new, "0.30", 60_000)
    crowd(new, [f"f{n}" for n in range(30)], say("done", **EACH))
    new.worker(concurrency=16)
    new.worker(concurrency=16)
    new.rest()
    used = spent(new)
    assert (used.tokens, used.cost_usd) == (44_000, Decimal("0.20"))
    kinds = sorted(new.rows(f"f{n}")[-1][0] for n in range(30))
    assert kinds == ["assistant"] * 2 + ["error"] * 28, "who did not fit was told"


def test_fifteen_tasks_in_one_step(new: Rig):
    cap(new, "0.50")
    tasks = [call("task", description=f"t{n}", prompt=f"[t{n}] work") for n in range(15)]
    new.script("root", ScriptedReply(tool_calls=tuple(tasks), **EACH), say("all done", **EACH))
    for n in range(15):
        new.script(f"t{n}", say("done", **EACH))
    new.worker(concurrency=16)
    new.run()
    assert spent(new).cost_usd <= Decimal("0.50")
    assert spent(new).cost_usd >= Decimal("0.30")


def test_sixteen_forks_of_a_cached_parent_whose_cache_has_expired(new: Rig):
    cap(new, "1.00")
    whole, cached = Usage(100_000, 1_000), Usage(101_000, 1_000, cached_tokens=100_000)
    first = ScriptedReply(tool_calls=(call("list_agents"),), usage=whole, cost_usd=0.30)
    new.script("root", first, say("ready", usage=cached, cost_usd=0.03))
    new.worker(concurrency=16)
    new.run()
    crowd(new, [f"f{n}" for n in range(16)], say("done", usage=whole, cost_usd=0.30))
    new.rest()
    assert spent(new).cost_usd == Decimal("0.93")


def test_a_parent_that_was_only_ever_billed_from_the_cache(new: Rig):
    """Nobody could know the price of what was never uncached: one call shows it."""
    cap(new, "1.00")
    cached, whole = Usage(100_000, 1_000, cached_tokens=100_000), Usage(100_000, 1_000)
    new.script("root", say("ready", usage=cached, cost_usd=0.03))
    new.worker(concurrency=16)
    new.run()
    crowd(new, [f"f{n}" for n in range(16)], say("done", usage=whole, cost_usd=0.30))
    new.rest()
    assert Decimal("0.63") <= spent(new).cost_usd <= Decimal("1.00")


BILLED = {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "cost": 0.1}}
LOST = {
    "cut": cut(*text("Hel", finish=None), BILLED),
    "overloaded": stream(*text("Hel", finish=None), BILLED, {"error": {"code": 529, "message": "overloaded"}}),
}


@pytest.mark.parametrize("lost", LOST)
def test_attempts_that_are_lost_are_booked_and_no_more_are_made_than_fit(new: Rig, lost: str):
    with misbehaving(LOST[lost]) as server:
        cap(new, "0.25")
        new.worker(base_url=server.url, retries=3, longest_pause=60)
        new.run()
    assert len(server.chats) == 2, "a third one would not have fitted"
    assert (spent(new).tokens, spent(new).cost_usd) == (3000, Decimal("0.20"))
    assert "budget has no room for another attempt" in new.rows()[-1][1]["hint"]
    assert new.one("select count(*) from agentmesh.model_calls") == 1
    assert new.one("select count(*) from agentmesh.reservations") == 0


def test_an_answer_after_lost_attempts_costs_as_much_as_all(new: Rig):
    with misbehaving(LOST["cut"], LOST["cut"], stream(*text("Hello"), BILLED)) as server:
        cap(new, "5")
        new.worker(base_url=server.url, retries=3)
        assert new.run() == "Hello"
    assert (spent(new).tokens, spent(new).cost_usd) == (4500, Decimal("0.30"))
    assert new.one("select least_usd from agentmesh.model_bills") == Decimal("0.1"), "a bill is that of one attempt"


def test_attempts_that_break_off_before_their_bill_cost_what_the_model_billed_before(new: Rig):
    lost, whole = cut(*text("Hel", finish=None)), stream(*text("Hello"), BILLED)
    with misbehaving(whole, lost, lost, whole) as server:
        cap(new, "50")
        new.worker(base_url=server.url, retries=3)
        assert (new.run(), new.run()) == ("Hello", "Hello")
        assert Decimal("0.40") <= spent(new).cost_usd <= Decimal("1.20")
        assert new.one("select least_usd from agentmesh.model_bills") == Decimal("0.1")
        assert new.one("select sum(cost_usd) from agentmesh.model_calls") == spent(new).cost_usd


def test_no_more_attempts_break_off_before_their_bill_than_fit(new: Rig):
    lost, whole = cut(*text("Hel", finish=None)), stream(*text("Hello"), BILLED)
    with misbehaving(whole, lost) as server:
        cap(new, "1")
        new.worker(base_url=server.url, retries=1000)
        for _ in range(12):
            new.run()
    assert len(server.chats) <= 10
    assert Decimal("0.5") <= spent(new).cost_usd <= Decimal(1)
    assert new.rows()[-1][1]["kind"] == "limit"


def test_prompts_that_were_accepted_and_timed_out_are_booked_each_by_estimate(new: Rig):
    with misbehaving(hanging(), hanging(), stream(*text("Hello"), BILLED)) as server:
        new.worker(base_url=server.url, retries=3, timeouts={"first_token_timeout": 0.3})
        new.run("x" * 40_000)
        sent = sum(len(seen.body) // 4 for seen in server.chats)
    # "timeout" is tried again once: the third prompt is not sent.
    assert len(server.chats) == 2
    booked = "select input_tokens, output_tokens, estimated, error from agentmesh.model_calls"
    assert new.conn.execute(booked).fetchall() == [(sent, 0, True, "timeout")]
    assert spent(new).tokens == sent


def breaks(*_args: Any, **_fields: Any) -> None:
    raise ZeroDivisionError


DEFECTS = {
    "in the client": "agentmesh.llm.assemble.Assembly.reply",
    "before the answer is judged": "agentmesh.engine.prefixes.Prefixes.saw",
    "in the engine": "agentmesh.engine.recording.content",
    "when the answer is stored": "agentmesh.store.steps.finish_step",
}


@pytest.mark.parametrize("where", DEFECTS)
def test_a_paid_answer_that_a_defect_keeps_from_its_rows_is_booked(new: Rig, monkeypatch, where: str):
    monkeypatch.setattr(DEFECTS[where], breaks)
    with misbehaving(stream(*text("Hello"), BILLED)) as server:
        cap(new, "5")
        new.worker(base_url=server.url)
        new.prompt()
        new.rest()
    assert (spent(new).tokens, spent(new).cost_usd) == (1500, Decimal("0.10"))
    assert new.one("select count(*) from agentmesh.model_calls") == 1
    assert new.one("select count(*) from agentmesh.reservations") == 0
    told = new.rows()[-1][1]
    assert (told["kind"], told["error"].startswith("agentmesh itself failed")) == ("bug", True)
    assert "stderr" in told["hint"]


# How the first call goes ahead


def test_until_the_first_bill_of_a_model_others_wait_without_a_thread(new: Rig):
    billed = threading.Event()
    new.script("root", when(billed, say("first", **EACH)))
    names = [f"f{n}" for n in range(6)]
    cap(new, "10")
    new.worker(concurrency=2)
    new.prompt()
    new.until_asked()
    crowd(new, names, say("done", **EACH))
    new.until(lambda: waiting(new) == 6, "all others wait")
    new.until(
        lambda: (
            "waiting for the first bill of sim/m"
            in str(new.one("select activity from agentmesh.v_agents where name = 'f5'"))
        ),
        "their activity says for what",
    )
    assert [name for name in names if new.requests(name)] == []
    other = new.session()
    new.db.run(mailbox.send, None, other, "go")
    new.until_asked("root", times=2)  # the second of the two threads is free for another session
    billed.set()
    new.rest()
    assert [new.last(name)[0] for name in names] == ["done"] * 6
    assert waiting(new) == 0


def test_a_first_call_that_fails_lets_the_next_go(new: Rig):
    failing = threading.Event()
    new.script("root", when(failing, ScriptedReply(fault=Fault(FaultKind.STATUS, status=400))))
    cap(new, "10")
    new.worker()
    new.prompt()
    new.until_asked()
    crowd(new, ["a", "b"], say("done", **EACH))
    new.until(lambda: waiting(new) == 2, "both wait")
    failing.set()
    new.rest()
    assert [new.last(name)[0] for name in "ab"] == ["done", "done"]


@pytest.mark.parametrize("how", ["killed", "interrupted", "its worker died"])
def test_a_first_call_that_never_ends_holds_nobody(new: Rig, how: str):
    late = threading.Event()
    new.script("first", when(late, say("late", **EACH)))
    cap(new, "10")
    first = new.process()
    new.fork("first", "work")
    new.until_asked("first")
    new.worker()
    crowd(new, ["a", "b"], say("done", **EACH))
    new.until(lambda: waiting(new) == 2, "both wait")
    if how == "killed":
        new.kill("first")
    elif how == "interrupted":
        new.interrupt("first")
    else:
        first.process.kill()
        first.process.join()
        late.set()  # whoever takes over asks again
        new.bury(first.worker_id)
    done = "select count(*) from agentmesh.transcript where kind = 'assistant' and content ->> 'text' = 'done'"
    new.until(lambda: new.one(done) == 2, "both are done")
    late.set()
    new.rest()


def test_where_nobody_hears_the_tick_finds_that_a_call_need_wait_no_longer(new: Rig):
    billed = threading.Event()
    new.script("root", when(billed, say("first", **EACH)))
    cap(new, "10")
    new.worker(deaf=True, tick=0.05)
    new.prompt()
    new.until_asked()
    crowd(new, ["a"], say("done", **EACH))
    new.until(lambda: waiting(new) == 1, "it waits")
    billed.set()
    new.rest()
    assert new.last("a")[0] == "done"


def test_an_agent_that_waits_for_the_budget_can_be_interrupted_killed_and_written_to(new: Rig):
    billed = threading.Event()
    new.script("root", when(billed, say("first", **EACH)))
    cap(new, "10")
    new.worker()
    new.prompt()
    new.until_asked()
    crowd(new, ["a", "b", "c"], say("done", **EACH))
    new.until(lambda: waiting(new) == 3, "all wait")
    new.interrupt("a")
    new.kill("b")
    new.prompt("more", "c")
    new.until(lambda: waiting(new) == 1, "one is left")
    assert (new.status("a"), new.status("b")) == ("idle", "dead")
    billed.set()
    new.rest()
    (request,) = new.requests("c")
    assert "more" in str(request.body["messages"])


def test_raising_the_cap_lets_waiting_calls_go(rig: Rig):
    running = threading.Event()
    rig.script("root", when(running, say("first")))
    cap(rig, None, 40_000)
    rig.worker()
    rig.prompt()
    rig.until_asked()
    crowd(rig, ["a"], say("done"))
    rig.until(lambda: waiting(rig) == 1, "it waits for room")
    rig.db.run(
        budgets.set_budget, rig.one("select session_id from agentmesh.agents"), Cap(Unit.TOKENS, Decimal(400_000))
    )
    rig.until(lambda: rig.last("a")[0] == "done", "it goes")
    running.set()
    rig.rest()


@pytest.mark.slow
def test_a_first_call_whose_server_falls_silent_holds_the_others_until_it_is_given_up(new: Rig):
    silent = ScriptedReply("half of", fault=Fault(FaultKind.HANG_STREAM, after=1))
    new.script("root", silent, silent, say("not asked"))
    cap(new, "10")
    new.worker(retries=1, timeouts={"idle_timeout": 0.5})
    new.prompt()
    new.until_asked()
    crowd(new, ["a"], say("done", **EACH))
    new.rest()
    assert new.last("a")[0] == "done"
    assert new.rows()[-1][1]["kind"] == "timeout"


def test_a_listed_price_is_known_before_the_first_call(new: Rig):
    new.conn.execute("update agentmesh.agents set model = 'sim/gpt-4o'")
    cap(new, "0.001")
    new.worker(timeouts={"priced_as": "openai"})
    new.run()
    assert new.requests() == [], "its prompt alone would cost more"
    assert "does not fit into the budget" in new.rows()[-1][1]["error"]
    cap(new, "0.1")
    new.prompt()
    new.rest()
    (request,) = new.requests()
    assert 256 <= request.body["max_tokens"] < 10_000, "an output token costs 10 USD a million"


# How long an answer may be


def test_an_answer_is_no_longer_than_what_is_left_and_says_so(rig: Rig):
    cap(rig, None, 12_000)
    rig.script("root", say("half of it", finish_reason="length"))
    rig.worker()
    rig.run()
    (request,) = rig.requests()
    most = request.body["max_tokens"]
    assert 256 <= most < 12_000
    assert rig.rows()[-1][1]["text"] == f"the answer was cut: the budget left room for {most:,} tokens"


def test_where_the_longest_answer_fits_the_server_is_told_no_bound(rig: Rig):
    cap(rig, None, 100_000)
    rig.worker()
    rig.run()
    (request,) = rig.requests()
    assert "max_tokens" not in request.body


def test_a_bill_above_what_was_reserved_is_shown_and_remembered(new: Rig):
    cap(new, None, 30_000)
    new.script("root", say("hello", usage=Usage(50_000, 100)))
    new.worker()
    new.run()
    assert spent(new).tokens == 50_100
    said = [content["text"] for kind, content in new.rows() if kind == "event"]
    assert "sim/m billed 50,100 tokens for a call that 30,000 tokens were reserved for" in said[0]
    cap(new, None, 75_000)
    new.prompt()
    new.rest()
    assert len(new.requests()) == 1, "it would bill as much again"
    assert "this one takes at least 51," in new.rows()[-1][1]["error"]


def test_a_prefix_is_the_same_for_a_fork_whose_answer_is_shortened(rig: Rig):
    rig.script("root", say("hello"))
    rig.worker()
    rig.run()
    used = spent(rig).tokens
    cap(rig, None, used + 12_000)
    crowd(rig, ["child"], say("done"))
    rig.rest()
    (parent,), (child,) = rig.requests(), rig.requests("child")
    assert "max_tokens" in child.body
    assert child.body["tools"] == parent.body["tools"]
    assert child.body["messages"][: len(parent.body["messages"])] == parent.body["messages"]
