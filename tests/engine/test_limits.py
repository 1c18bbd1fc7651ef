"""Limits of a turn and of a session's time: the turn ends before its next model call, and says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentmesh.llm import pauses
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.store import context, limits, travel
from tests.fixtures.engine import Rig, call, do, say

LOOK = call("list_agents")


def set_limits(rig: Rig, **changes: int | None) -> None:
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    rig.db.run(limits.set_limits, session, changes)


def used(rig: Rig, name: str) -> tuple[int | None, int | None]:
    session = rig.one("select session_id from agentmesh.agents where id = %s", rig.root)
    return next((one.cap, one.used) for one in rig.db.run(limits.view, session) if one.name == name)


def error(rig: Rig, agent: str = "root") -> dict[str, object]:
    kind, content = rig.rows(agent)[-1]
    assert kind == "error"
    return content


def test_a_turn_makes_only_so_many_calls_and_the_next_one_as_many_again(rig: Rig):
    set_limits(rig, max_turns=2)
    rig.script("root", *[do(LOOK)] * 9)
    rig.worker()
    rig.run()
    assert len(rig.requests()) == 2
    assert error(rig)["error"] == "this turn has made its 2 model calls (max_turns)"
    assert "agentmesh limits --max-turns N" in str(error(rig)["hint"])
    assert "/retry" not in str(error(rig)["hint"]), "a shell has no such command, and the screen adds it"
    assert rig.one("select activity from agentmesh.v_agents") == "failed"
    rig.run("on")
    assert len(rig.requests()) == 4
    set_limits(rig, max_turns=None)
    rig.run("and on")
    assert len(rig.requests()) > 6


def test_a_turn_that_mail_began_at_the_end_of_another_counts_anew(rig: Rig):
    set_limits(rig, max_turns=2)
    rig.fork("child")

    def while_mail_comes(_view: object) -> ScriptedReply:
        rig.send("child", "root", "news")
        return say("one")

    rig.script("root", do(LOOK), while_mail_comes, do(LOOK), say("two"))
    rig.worker()
    assert rig.run() == "two"


def test_a_turn_takes_only_so_long(rig: Rig):
    set_limits(rig, max_turn_seconds=60)
    rig.worker()

    def older(_view: object) -> ScriptedReply:
        rig.conn.execute("update agentmesh.agents set turn_began = turn_began - interval '61 seconds'")
        return do(LOOK)

    rig.script("root", do(LOOK), older, say("never"))
    rig.run()
    assert error(rig)["error"] == "this turn has taken its 60 seconds (max_turn_seconds)"
    assert len(rig.requests()) == 2


def test_no_call_begins_after_the_session_s_time(rig: Rig):
    set_limits(rig, max_seconds=3600)
    rig.script("root", say("hello"), say("again"))
    rig.worker()
    assert rig.run() == "hello"
    rig.conn.execute("update agentmesh.sessions set deadline = clock_timestamp() - interval '1 second'")
    rig.run()
    assert "the session's time is over since" in str(error(rig)["error"])
    assert len(rig.requests()) == 1
    set_limits(rig, max_seconds=60)
    rig.run()
    assert len(rig.requests()) == 2


def test_a_parent_hears_of_a_child_at_its_limit(rig: Rig):
    set_limits(rig, max_turns=3)
    rig.script(
        "root",
        do(call("fork", name="child", prompt="work")),
        do(call("wait", timeout=60, from_agents=["child"])),
        say("heard"),
    )
    rig.script("child", *[do(LOOK)] * 9)
    rig.worker()
    assert rig.run() == "heard"
    (result,) = rig.results("wait")[-1]["results"]
    assert "this turn has made its 3 model calls" in result["error"]


def test_a_new_worker_counts_on(rig: Rig):
    set_limits(rig, max_turns=3)
    rig.script("root", do(LOOK), do(LOOK), do(LOOK), say("never"))
    rig.crash("after finish_step 2")
    assert "3 model calls" in str(error(rig)["error"])


@pytest.mark.parametrize("status", ["idle", "dead"])
def test_agents_that_are_gone_count_as_made(rig: Rig, status):
    set_limits(rig, max_spawns=2)
    for name in ("one", "two"):
        rig.fork(name)
        if status == "dead":
            rig.kill(name)
    rig.script("root", do(call("fork", name="three", prompt="work")), do(call("task", prompt="work", description="x")))
    rig.worker()
    rig.run()
    for tool in ("fork", "task"):
        (refused,) = rig.results(tool)
        assert refused["error"] == "the session has made 2 agents, its limit (max_spawns)"
    assert used(rig, "max_spawns") == (2, 2)
    set_limits(rig, max_spawns=None)
    rig.fork("three")


def test_items_of_a_batch_beyond_the_agents_that_may_be_made_are_refused(rig: Rig):
    set_limits(rig, max_spawns=3)
    items = ["a", "b", "c", "d", "e"]
    rig.script("root", do(call("task", prompt="Look at {item}.", description="look", items=items, side=2)), say("over"))
    rig.worker()
    assert rig.run() == "over"
    (result,) = rig.results("task")
    assert [one["status"] for one in result["results"]] == ["completed"] * 3 + ["refused"] * 2
    assert "its limit (max_spawns)" in result["results"][4]["error"]
    assert used(rig, "max_spawns") == (3, 3)


def test_no_summary_is_made_after_the_session_s_time(rig: Rig):
    rig.script("root", say("hello"))
    rig.worker()
    rig.run()
    set_limits(rig, max_seconds=1)
    rig.conn.execute("update agentmesh.sessions set deadline = clock_timestamp()")
    rig.db.run(context.compact, rig.root)
    rig.rest()
    assert "the session's time is over" in str(error(rig)["error"])
    assert len(rig.requests()) == 1


def test_a_session_that_is_made_from_another_has_its_limits(rig: Rig):
    set_limits(rig, max_turns=7, max_spawns=8, max_turn_seconds=9, max_seconds=3600)
    rig.script("root", say("hello"))
    rig.worker()
    rig.run()
    made = rig.db.run(travel.fork_session, rig.root, 2, None)
    found = rig.conn.execute(
        "select max_turns, max_spawns, max_turn_seconds, deadline > clock_timestamp() + interval '50 minutes'"
        " from agentmesh.sessions s join agentmesh.agents a on a.session_id = s.id where a.id = %s",
        [made.id],
    ).fetchall()
    assert found == [(7, 8, 9, True)]


BUSY = Fault(FaultKind.STATUS, status=429, headers={"Retry-After": "0.1"})
PASSES = {
    "a pause": BUSY,
    "another try": Fault(FaultKind.STATUS, status=500),
    "a cut answer": Fault(FaultKind.CUT, after=3),
}
LIMITS = {
    "max_seconds": "update agentmesh.sessions set deadline = clock_timestamp()",
    "max_turn_seconds": "update agentmesh.agents set turn_began = turn_began - interval '61 seconds'",
    "max_turns": "update agentmesh.sessions set max_turns = 1",
}


def meanwhile(rig: Rig, statement: str, fault: Fault) -> Callable[[object], ScriptedReply]:
    """Return an answer that fails, after something has happened in the database."""

    def answer(_view: object) -> ScriptedReply:
        rig.conn.execute(statement)
        return ScriptedReply("a long answer. " * 20, fault=fault)

    return answer


@pytest.mark.parametrize("fault", PASSES.values(), ids=PASSES)
def test_no_request_is_sent_after_the_session_s_time_not_even_another_one_of_the_same_call(rig: Rig, fault):
    set_limits(rig, max_seconds=3600)
    rig.script("root", meanwhile(rig, LIMITS["max_seconds"], fault))
    rig.worker(retries=3, longest_pause=60.0)
    rig.run()
    assert len(rig.requests()) == 1
    assert "the session's time is over since" in str(error(rig)["error"])
    assert rig.one("select activity from agentmesh.v_agents") == "failed"
    streamed = "select output_tokens > 0 from agentmesh.model_calls where error = 'limit'"
    assert rig.one(streamed) is (fault.kind is FaultKind.CUT)


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_is_looked_at_again_after_a_pause(rig: Rig, name):
    set_limits(rig, max_turn_seconds=60, max_turns=50, max_seconds=3600)
    rig.script("root", do(LOOK), meanwhile(rig, LIMITS[name], BUSY))
    rig.worker(longest_pause=60.0)
    rig.run()
    assert len(rig.requests()) == 2
    assert error(rig)["limit"] == name


def test_a_pause_ends_when_the_session_s_time_does_unless_it_was_given_more(rig: Rig):
    hour = Fault(FaultKind.STATUS, status=429, headers={"Retry-After": "3600"})
    soon = "update agentmesh.sessions set deadline = clock_timestamp() + interval '1 second'"
    rig.script("root", meanwhile(rig, soon, hour))
    rig.worker(longest_pause=7200.0)
    rig.run()
    assert "the session's time is over since" in str(error(rig)["error"])
    assert len(rig.requests()) == 1


@pytest.mark.parametrize(("status", "seconds"), [(429, "3600"), (500, "100")], ids=["load", "failure"])
def test_a_pause_ends_when_a_person_ends_the_session_s_time_meanwhile(rig: Rig, monkeypatch, status, seconds):
    monkeypatch.setattr(pauses, "_ASK_EVERY", 0.05)
    rig.script("root", ScriptedReply("x", fault=Fault(FaultKind.STATUS, status, headers={"Retry-After": seconds})))
    rig.worker(longest_pause=7200.0, retries=3)
    rig.prompt()
    told = ("paused", "retrying")
    rig.until(lambda: rig.one("select activity from agentmesh.v_agents").startswith(told), "the pause")
    rig.conn.execute(LIMITS["max_seconds"])
    rig.rest()
    assert error(rig)["limit"] == "max_seconds"
    assert len(rig.requests()) == 1


def test_a_summary_that_a_person_wants_is_not_asked_for_after_the_session_s_time(rig: Rig):
    rig.script("root", say("words " * 400), meanwhile(rig, LIMITS["max_seconds"], BUSY))
    rig.worker(longest_pause=60.0)
    rig.run()
    set_limits(rig, max_seconds=3600)
    rig.db.run(context.compact, rig.root)
    rig.rest()
    assert len(rig.requests()) == 2
    assert error(rig)["limit"] == "max_seconds"


def test_limits_are_asked_for_with_the_step_and_alone_only_after_a_pause(rig: Rig):
    asked: list[str] = []
    faults = iter([BUSY])
    rig.script("root", do(LOOK), lambda _view: ScriptedReply("well", fault=next(faults, None)))
    rig.worker(longest_pause=60.0, hook=lambda when, name: asked.append(name) if when == "before" else None)
    assert rig.run() == "well"
    of_calls = [name for name in asked if name in ("begin_step", "of_call", "finish_step")]
    assert of_calls[:3] == ["begin_step", "finish_step", "begin_step"]
    assert set(of_calls[3:-1]) == {"of_call"}
