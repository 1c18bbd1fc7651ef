"""Before one step starts many agents, a person is asked, with what they reserve of the budget."""

from __future__ import annotations

import re
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from agentmesh.domain.permissions import Decision, Permissions, Rule
from agentmesh.domain.rows import Request
from agentmesh.domain.states import PermissionMode
from agentmesh.store import limits, requests
from tests.fixtures.engine import Rig, call, do, say, until

UNPRICED = r"starts 4 agents on sim/m, reserves up to \d+k tokens of 20\.0M \(20\.0M left\); the price is not known"


@pytest.fixture
def attended(rig: Rig) -> Rig:
    """A session in which a person is asked before one step starts four agents."""
    rig.root = rig.session(ask_agents=4)
    return rig


def session_of(rig: Rig) -> Any:
    return rig.one("select session_id from agentmesh.agents where id = %s", rig.root)


def question(rig: Rig) -> Request:
    """Wait until a request waits, and return the only one."""
    found: list[Request] = until(lambda: rig.db.run(requests.pending, session_of(rig)), "a request")
    (only,) = found
    return only


def answer(rig: Rig, **words: Any) -> None:
    rig.db.run(requests.answer, question(rig).id, words, "tester")


def batch(count: int, **more: Any) -> Any:
    items = [f"a{n}" for n in range(1, count + 1)]
    return call("task", description="count", prompt="[{item}] Count.", items=items, **more)


def forks(count: int, **more: Any) -> list[Any]:
    return [call("fork", name=f"f{n}", prompt="look", **more) for n in range(1, count + 1)]


def tasks(count: int, **more: Any) -> list[Any]:
    return [call("task", description=f"part {n}", prompt=f"[t{n}] look", **more) for n in range(1, count + 1)]


def made(rig: Rig) -> int:
    """Return how many agents were made in the session."""
    count = "select count(*) - 1 from agentmesh.agents where session_id = %s"
    return int(rig.one(count, session_of(rig)))


def asked(rig: Rig) -> int:
    """Return how many requests were ever stored."""
    return int(rig.one("select count(*) from agentmesh.requests"))


def went_on(rig: Rig, text: str = "ok") -> bool:
    """Return whether the root's model was asked again, and answered this; reports of forks may come after it."""
    return any(content.get("text") == text for kind, content in rig.rows() if kind == "assistant")


MIXED = [*forks(1), batch(2), *tasks(1)]


@pytest.mark.parametrize("calls", [[batch(4)], forks(4), tasks(4), MIXED])
def test_a_step_that_starts_many_agents_asks_once_and_goes_on_after_yes(attended: Rig, calls: list[Any]):
    attended.script("root", do(call("list_agents"), *calls), say("ok"))
    attended.worker()
    attended.prompt()
    found = question(attended)
    assert (found.kind, found.agents, found.rules) == ("approval", 4, [])
    assert re.fullmatch(UNPRICED, found.reason), found.reason
    assert made(attended) == 0
    answer(attended, decision="once")
    attended.rest()
    assert made(attended) == 4
    assert asked(attended) == 1
    assert went_on(attended)


@pytest.mark.parametrize("calls", [[batch(4)], MIXED])
def test_a_no_refuses_all_calls_that_start_agents_and_no_others(attended: Rig, calls: list[Any]):
    attended.script("root", do(*calls, call("list_agents")), say("alone then"))
    attended.worker()
    attended.prompt()
    answer(attended, decision="no", reason="too dear")
    attended.rest()
    *refused, listed = attended.results()
    assert [one["error"] for one in refused] == ["the user refused to start 4 agents: too dear"] * len(calls)
    assert "agents" in listed
    assert made(attended) == 0
    assert went_on(attended, "alone then")


def test_a_no_without_a_reason_says_what_else_there_is(attended: Rig):
    attended.script("root", do(batch(4)), say("ok"))
    attended.worker()
    attended.prompt()
    answer(attended, decision="no")
    attended.rest()
    (refused,) = attended.results()
    assert refused["hint"] == "Start fewer, do the work yourself, or ask what you should do instead."


def test_the_question_has_the_money_if_the_price_is_known(attended: Rig):
    attended.conn.execute("update agentmesh.model_bills set input_usd = 0.000001, cached_usd = 0, output_usd = 0.00001")
    attended.script("root", do(*forks(2), *tasks(2, model="sim/other")), say("ok"))
    attended.know_bills("sim/other")
    attended.conn.execute(
        "update agentmesh.model_bills set input_usd = 0, output_usd = 0.00003, cached_usd = 0 where model = 'sim/other'"
    )
    attended.worker()
    attended.prompt()
    told = re.fullmatch(
        r"starts 4 agents on sim/m, sim/other, reserves up to \$(\d\.\d\d) of \$10\.00 \(\$10\.00 left\)",
        question(attended).reason,
    )
    assert told
    assert float(told[1]) == pytest.approx(32_768 * (2 * 0.00001 + 2 * 0.00003), rel=0.05)  # and a little for the input
    answer(attended, decision="no")
    attended.rest()


@pytest.mark.parametrize("calls", [forks(3), [batch(3)], [call("list_agents")] * 6])
def test_fewer_agents_are_started_without_a_question(attended: Rig, calls: list[Any]):
    attended.script("root", do(*calls), say("ok"))
    attended.worker()
    attended.run()
    assert went_on(attended)
    assert asked(attended) == 0


def test_who_is_alone_is_not_asked(attended: Rig):
    attended.db.run(requests.set_attended, session_of(attended), False)
    attended.script("root", do(batch(5)), say("ok"))
    attended.worker()
    attended.run()
    assert went_on(attended)
    assert made(attended) == 5
    assert asked(attended) == 0


def test_what_goes_on_with_an_earlier_agent_starts_none(attended: Rig):
    def again(_view: Any) -> Any:
        return do(*tasks(3, agent_id=str(attended.agent("part-1"))), *forks(1))

    attended.script("root", do(*tasks(1)), again, say("ok"))
    attended.worker()
    attended.run()
    assert went_on(attended)
    assert asked(attended) == 0


def test_calls_that_a_rule_denies_are_not_counted(attended: Rig):
    rules = Permissions(((Rule(Decision.DENY, "task", "*"),),)).to_json()
    attended.conn.execute("update agentmesh.agents set permissions = %s", [Jsonb(rules)])
    attended.script("root", do(*forks(2), *tasks(3)), say("ok"))
    attended.worker()
    attended.run()
    assert went_on(attended)
    assert asked(attended) == 0
    assert made(attended) == 2


@pytest.mark.parametrize("change", ["threshold", "never", "unattended"])
def test_a_question_that_no_longer_counts_is_settled(attended: Rig, change: str):
    attended.script("root", do(batch(4)), say("ok"))
    attended.worker()
    attended.prompt()
    question(attended)
    if change == "unattended":
        attended.db.run(requests.set_attended, session_of(attended), False)
    else:
        attended.db.run(limits.set_limits, session_of(attended), {"ask_agents": 5 if change == "threshold" else None})
    attended.rest()
    assert made(attended) == 4
    assert went_on(attended)


def test_always_asks_no_more_in_this_session(attended: Rig):
    attended.script("root", do(*forks(4)), do(batch(6)), say("ok"))
    attended.worker()
    attended.prompt()
    answer(attended, decision="always")
    attended.rest()
    assert made(attended) == 10
    assert asked(attended) == 1
    cap = {one.name: one.cap for one in attended.db.run(limits.view, session_of(attended))}
    assert cap["ask_agents"] is None


@pytest.mark.parametrize("decision", ["once", "no"])
def test_a_call_that_needs_leave_of_its_own_asks_for_both_at_once(rig: Rig, decision: str):
    rig.root = rig.session(mode=PermissionMode.ASK, ask_agents=2)
    rules = Permissions(((Rule(Decision.ASK, "fork", "*"),),)).to_json()
    rig.conn.execute("update agentmesh.agents set permissions = %s", [Jsonb(rules)])
    rig.script("root", do(*forks(2)), say("ok"))
    rig.worker()
    rig.prompt()
    first, second = until(
        lambda: len(found := rig.db.run(requests.pending, session_of(rig))) == 2 and found, "two requests"
    )
    assert (first.agents, second.agents) == (2, None)
    assert first.reason.startswith("starts 2 agents on sim/m")
    assert first.reason.endswith(f"; {second.reason}")
    rig.db.run(requests.answer, first.id, {"decision": decision}, "tester")
    if decision == "once":
        rig.db.run(requests.answer, second.id, {"decision": "once"}, "tester")
    rig.rest()
    assert made(rig) == (2 if decision == "once" else 0)
    assert went_on(rig)


def test_a_yes_to_many_agents_is_none_to_what_their_check_may_do(rig: Rig):
    rig.root = rig.session(mode=PermissionMode.EDITS, ask_agents=2)
    schema = {"type": "object"}
    rig.script("root", do(*tasks(2, schema=schema, check="true")), say("ok"))
    rig.script("t1", do(call("report")))
    rig.script("t2", do(call("report")))
    rig.worker()
    rig.prompt()
    answer(rig, decision="once")
    rig.rest()
    assert made(rig) == 2
    assert rig.one("select bool_or(check_approved) from agentmesh.tasks") is False


# Crashes


@pytest.mark.parametrize("decision", ["once", "no"])
def test_the_question_and_its_answer_survive_the_worker(attended: Rig, decision: str):
    attended.script("root", do(*forks(4)), say("ok"))
    process = attended.process()
    attended.prompt()
    found = question(attended)
    process.process.kill()
    process.join()
    attended.db.run(requests.answer, found.id, {"decision": decision}, "tester")
    attended.bury(process.worker_id)
    attended.worker()
    attended.rest()
    assert made(attended) == (4 if decision == "once" else 0)
    assert asked(attended) == 1


@pytest.mark.parametrize("failpoint", ["before ask 1", "after ask 1", "before fork 1", "after fork 1", "after fork 3"])
def test_a_crash_at_any_commit_asks_once_and_starts_each_agent_once(attended: Rig, failpoint: str):
    attended.script("root", do(*forks(8)), say("ok"))
    process = attended.process(failpoint)
    attended.prompt()
    if "fork" in failpoint:
        answer(attended, decision="once")
    assert process.join() == -9
    attended.bury(process.worker_id)
    attended.worker()
    if "ask" in failpoint:
        answer(attended, decision="once")
    attended.rest()
    assert made(attended) == 8
    assert asked(attended) == 1
    assert went_on(attended)
