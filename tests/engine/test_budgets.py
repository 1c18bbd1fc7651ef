"""Budgets as agents and their parents meet them: the next call is refused, and all who must know are told."""

from __future__ import annotations

import threading
from decimal import Decimal

import pytest

from agentmesh.domain.budgets import Cap, Unit
from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.store import budgets, context, person
from tests.fixtures.engine import Rig, call, do, once, say, when
from tests.fixtures.worker_process import PROVIDER


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
    assert error["hint"].endswith("Then a message to it lets it go on.")
    assert len(rig.requests()) == 1
    cap(rig, None)
    rig.db.run(person.retry, rig.agent("root"))
    rig.rest()
    assert rig.last() == ("done after all", None)
    assert len(rig.requests()) == 2


def test_the_call_of_a_turn_with_another_model_is_reserved_by_that_one(rig: Rig):
    reserved: list[int] = []
    other = f"{PROVIDER}/other"
    rig.know_bills(other)
    rig.conn.execute("update agentmesh.model_bills set output_excess = 10 where model = %s", [other])
    rig.fork("a")

    def look(_view: ChatRequestView) -> ScriptedReply:
        reserved.append(rig.one("select tokens from agentmesh.reservations where agent_id = %s", rig.root))
        return do(call("list_agents"))

    def change(view: ChatRequestView) -> ScriptedReply:
        rig.db.run(person.set_model, rig.agent("root"), other)
        return look(view)

    def end(view: ChatRequestView) -> ScriptedReply:
        rig.send("a", "root", "the next turn")
        look(view)
        return say("first")

    rig.script("root", change, end, look, say("second"))
    rig.worker()
    rig.run()
    assert [request.body["model"] for request in rig.requests()] == ["m", "m", "other", "other"]
    before, same, after = reserved
    assert before < same < 40_000
    assert after > 320_000, "ten times as much"


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


def test_of_ten_agents_that_call_at_once_as_many_may_as_fit_and_the_rest_waits_and_is_told(rig: Rig):
    names = [f"child-{n}" for n in range(10)]
    # Each reserves 32,768 tokens and those of its request: three fit.
    cap(rig, 130_000)
    waiting = "select count(*) from agentmesh.reservations where waits"
    asked = threading.Event()

    def answer(view: ChatRequestView) -> ScriptedReply:
        assert asked.wait(20)
        return say("done", usage=Usage(1000, min(30_000, int(view.body.get("max_tokens", 30_000)))))

    for name in names:
        rig.fork(name)
        rig.script(name, answer)
    for name in names:
        rig.prompt("work", name)
    rig.worker(concurrency=10)
    rig.until(lambda: rig.one(waiting) == 7, "seven wait")
    rig.until(lambda: len(rig.model.requests) == 3, "three are asked")
    asked.set()
    rig.rest()
    done = [name for name in names if rig.last(name)[0] == "done"]
    assert len(done) >= 4
    assert 124_000 <= rig.one("select tokens from agentmesh.v_budgets") <= 130_000
    assert all("does not fit" in str(rig.last(name)[1]) for name in names if name not in done)


def test_an_interrupted_call_frees_what_was_reserved_for_it(rig: Rig):
    rig.script("root", once(lambda: rig.one("select interrupt_turn from agentmesh.agents") is not None, say("late")))
    rig.worker()
    rig.prompt()
    rig.until_asked()
    assert rig.one("select reserved_tokens from agentmesh.v_budgets") > 0
    rig.interrupt("root")
    rig.rest()
    assert rig.one("select reserved_tokens from agentmesh.v_budgets") == 0


USED = Usage(input_tokens=2300, output_tokens=100)


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["finish_step", "fail_turn", "stop_turn", "summarize"])
def test_the_cost_of_an_answer_whose_commit_is_fenced_is_booked(rig: Rig, ends: str):
    """The worker is taken for dead while the model answers: the answer is lost, and paid all the same."""
    answering = threading.Event()
    late = {
        "finish_step": say("late", usage=USED),
        "summarize": say("late", usage=USED),
        "fail_turn": say("half", usage=USED, fault=Fault(FaultKind.ERROR_EVENT, after=2)),
        "stop_turn": say(
            "half of a long answer", usage=USED, chunk_size=2, fault=Fault(FaultKind.HANG_STREAM, after=4)
        ),
    }[ends]
    if ends == "summarize":
        rig.script("root", say("x" * 2000), when(answering, late), say("again", usage=USED))
    else:
        rig.script("root", when(answering, late))
    lost: list[str] = []

    def bury(when_: str, name: str) -> None:
        if (when_, name) == ("before", ends) and not lost:
            lost.append(name)
            rig.bury(parts.worker.worker_id)

    parts = rig.worker(hook=bury)
    if ends == "summarize":
        rig.run("y" * 4000)
        rig.db.run(context.compact, rig.agent("root"))
        rig.until_asked(times=2)
    else:
        rig.prompt()
        rig.until_asked()
    answering.set()
    if ends == "stop_turn":
        rig.until(lambda: rig.interrupt("root"))
    rig.until(lambda: lost, "the commit is fenced")
    rig.until(
        lambda: (
            rig.one("select count(*) from agentmesh.model_calls where agent_id = %s", rig.root)
            >= (3 if ends == "summarize" else 2 if ends != "stop_turn" else 1)
        ),
        "the lost call is booked, and the one that was made again",
    )
    rig.rest()
    turns = (
        "select bool_and(c.turn <= a.turn) from agentmesh.model_calls c join agentmesh.agents a on a.id = c.agent_id"
    )
    assert rig.one(turns)
