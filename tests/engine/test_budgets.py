"""Budgets as agents and their parents meet them: the next call is refused, and all who must know are told."""

from __future__ import annotations

from decimal import Decimal

from agentmesh.domain.budgets import Cap, Unit
from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.store import budgets, person
from tests.fixtures.engine import Rig, call, do, once, say


def cap(rig: Rig, tokens: int | None, agent: str | None = None) -> None:
    amount = None if tokens is None else Decimal(tokens)
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.db.run(budgets.set_budget, session, Cap(Unit.TOKENS, amount), rig.agent(agent) if agent else None)


def test_a_refused_call_ends_the_turn_and_it_goes_on_when_the_budget_is_raised(rig: Rig):
    def spend(_view: ChatRequestView) -> ScriptedReply:
        cap(rig, 1)
        return do(call("list_agents"))

    rig.script("root", spend, say("done after all"))
    rig.worker()
    rig.run()
    kind, error = rig.rows()[-1]
    assert (kind, error["kind"]) == ("error", "limit")
    assert "does not fit into the budget of the session, 1 tokens: used are " in error["error"]
    assert "agentmesh budget AMOUNT" in error["hint"]
    assert "/retry" in error["hint"]
    assert len(rig.requests()) == 1
    cap(rig, None)
    rig.db.run(person.retry, rig.agent("root"))
    rig.rest()
    assert rig.last() == ("done after all", None)
    assert len(rig.requests()) == 2


def test_the_parent_of_a_refused_agent_is_told_why(rig: Rig):
    rig.fork("child")
    cap(rig, 1, "child")
    rig.script(
        "root", do(call("send", to="child", message="work")), do(call("wait", timeout=30, from_agents=["child"]))
    )
    rig.worker()
    rig.run()
    (waited,) = rig.results("wait")
    (entry,) = waited["results"]
    assert entry["status"] == "idle"
    assert "the budget of its own, 1 tokens" in entry["error"]
    assert rig.requests("child") == []
    assert rig.last() == ("done", None)


def test_a_fork_beyond_the_budget_is_a_result_that_the_model_reads(rig: Rig):
    def spend(_view: ChatRequestView) -> ScriptedReply:
        cap(rig, 1)
        return do(call("fork", name="child", prompt="work"))

    rig.script("root", spend)
    rig.worker()
    rig.run()
    (refused,) = rig.results("fork")
    assert "the budget of the session" in refused["error"]
    assert "Do not retry" in refused["hint"]


def test_of_ten_agents_that_call_at_once_as_many_may_as_fit_and_the_rest_is_told(rig: Rig):
    names = [f"child-{n}" for n in range(10)]
    # Each reserves 2,000 tokens and those of its prompt: three fit.
    cap(rig, 7500)
    failed = "select count(*) from agentmesh.transcript where kind = 'error' and content ->> 'kind' = 'limit'"
    used = Usage(input_tokens=2300, output_tokens=100)
    for name in names:
        rig.fork(name)
        rig.prompt("work", name)
        rig.script(name, once(lambda: rig.one(failed) == 7, say("done", usage=used)))
    rig.worker(concurrency=10)
    rig.rest()
    assert sum(len(rig.requests(name)) for name in names) == 3
    assert rig.one("select tokens from agentmesh.v_budgets") == 7200
    assert sorted(rig.last(name)[0] for name in names) == [""] * 7 + ["done"] * 3


def test_an_interrupted_call_frees_what_was_reserved_for_it(rig: Rig):
    rig.script("root", once(lambda: rig.one("select interrupt_turn from agentmesh.agents") is not None, say("late")))
    rig.worker()
    rig.prompt()
    rig.until_asked()
    assert rig.one("select reserved_tokens from agentmesh.v_budgets") > 0
    rig.interrupt("root")
    rig.rest()
    assert rig.one("select reserved_tokens from agentmesh.v_budgets") == 0
