"""wait with from_agents: order, states, what is taken and what ends it."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import AgentBusy, BadWait, CallClosed, DeadAgent, Fenced, OtherSession, WaitBusy
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import sessions, waits, workers
from tests.fixtures.mesh import Mesh, entry, json, unknown

pytestmark = pytest.mark.only_rows


def test_results_stand_in_the_order_asked_whatever_came_first(mesh: Mesh):
    mesh.begin(mesh.root)
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.send(b, mesh.root, "from b")
    mesh.send(a, mesh.root, "from a")
    result = mesh.wait(mesh.root, a, b)
    assert result == {
        "outcome": "complete",
        "results": [entry(a, "a", "received", message="from a"), entry(b, "b", "received", message="from b")],
    }


def test_duplicates_are_merged_at_their_first_place(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    result = mesh.wait(mesh.root, "b", a, b, "a", str(a)[:8])
    assert result is not None
    assert [each["name"] for each in result["results"]] == ["b", "a"]


def test_duplicates_are_merged_in_plain_sql_too(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    lost = {"agent_id": "nobody", "error": "there is no agent 'nobody'"}
    asked = json([{"id": str(b)}, lost, {"id": str(a)}, lost, {"agent_id": "b", "id": str(b).upper()}])
    result = mesh.one("select agentmesh.wait_begin(%s, %s, 0)", mesh.root, asked)
    assert [entry.get("agent_id") for entry in result["results"]] == [str(b), "nobody", str(a)]


def test_a_wait_that_is_not_over_registers_and_ends_when_the_last_target_answers(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    call = mesh.call(mesh.root, "wait")[0]
    assert mesh.wait(mesh.root, a, b, lease=call) is None
    mesh.send(a, mesh.root, "one")
    assert mesh.take(mesh.root) is None
    assert mesh.unread(mesh.root) == ["one"], "a wait that goes on takes nothing"
    mesh.send(b, mesh.root, "two")
    result = mesh.take(mesh.root)
    assert result is not None
    assert [each["status"] for each in result["results"]] == ["received", "received"]
    assert mesh.result(call) == result
    assert mesh.unread(mesh.root) == []
    assert mesh.run(waits.registered, mesh.root) is None


def test_the_oldest_unread_message_of_a_sender_is_taken_and_more_counts_the_rest(mesh: Mesh):
    mesh.begin(mesh.root)
    a = mesh.fork(mesh.root, "a", "work")
    for text in ("first", "second", "third"):
        mesh.send(a, mesh.root, text)
    result = mesh.wait(mesh.root, a)
    assert result == {"outcome": "complete", "results": [entry(a, "a", "received", message="first", more=2)]}
    assert mesh.unread(mesh.root) == ["second", "third"]
    again = mesh.wait(mesh.root, a)
    assert again is not None
    assert again["results"] == [entry(a, "a", "received", message="second", more=1)]


def test_timeout_0_returns_at_once_with_true_states(mesh: Mesh):
    busy, idle, dead = mesh.fork(mesh.root, "busy", "work"), mesh.fork(mesh.root, "idle"), mesh.fork(mesh.root, "dead")
    mesh.kill(dead)
    result = mesh.wait(mesh.root, busy, idle, dead, timeout=0)
    assert result == {
        "outcome": "timeout",
        "results": [
            entry(busy, "busy", "running"),
            entry(idle, "idle", "idle", output=""),
            entry(dead, "dead", "dead"),
        ],
    }
    assert mesh.run(waits.registered, mesh.root) is None


def test_timeout_0_takes_what_has_arrived(mesh: Mesh):
    mesh.begin(mesh.root)
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.send(a, mesh.root, "here")
    result = mesh.wait(mesh.root, a, b, timeout=0)
    assert result == {
        "outcome": "timeout",
        "results": [entry(a, "a", "received", message="here"), entry(b, "b", "running")],
    }
    assert mesh.unread(mesh.root) == []


def test_the_timeout_takes_what_has_arrived(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    assert mesh.wait(mesh.root, a, b) is None
    mesh.send(a, mesh.root, "here")
    result = mesh.take(mesh.root, WaitOutcome.TIMEOUT)
    assert result is not None
    assert result["outcome"] == "timeout"
    assert [each["status"] for each in result["results"]] == ["received", "running"]


def test_a_timeout_in_the_instant_of_the_last_message_is_complete(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.send(a, mesh.root, "just in time")
    result = mesh.take(mesh.root, WaitOutcome.TIMEOUT)
    assert result == {"outcome": "complete", "results": [entry(a, "a", "received", message="just in time")]}


def test_a_message_beats_death(mesh: Mesh):
    mesh.begin(mesh.root)
    a = mesh.fork(mesh.root, "a", "work")
    mesh.send(a, mesh.root, "my last")
    mesh.kill(a)
    assert mesh.wait(mesh.root, a) == {
        "outcome": "complete",
        "results": [entry(a, "a", "received", message="my last")],
    }
    assert mesh.wait(mesh.root, a) == {"outcome": "complete", "results": [entry(a, "a", "dead")]}


def test_a_reaped_agent_counts_as_dead(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.kill(a)
    mesh.run(sessions.reap, mesh.session)
    assert mesh.wait(mesh.root, a) == {"outcome": "complete", "results": [entry(a, "a", "dead")]}


def test_unknown_and_ambiguous_entries_carry_their_error_and_fail_nobody_else(mesh: Mesh, same_prefix: str):
    idle = mesh.fork(mesh.root, "worker")
    result = mesh.wait(mesh.root, "wroker", idle, same_prefix, "wroker")
    assert result is not None
    unknown_one, fine, ambiguous = result["results"]
    assert result["outcome"] == "complete"
    assert fine == entry(idle, "worker", "idle", output="")
    assert unknown_one["agent_id"] == "wroker"
    assert "worker" in unknown_one["hint"], "close matches are listed"
    assert ambiguous["agent_id"] == same_prefix
    for each in (unknown_one, ambiguous):
        assert set(each) == {"agent_id", "error", "hint"}
        assert each["error"]
        assert each["hint"]


@pytest.fixture
def same_prefix(mesh: Mesh) -> str:
    """The prefix of two agents' ids."""
    for n in (1, 2):
        mesh.conn.execute(
            "insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, settings_id, forked_at,"
            " workspace_id)"
            " select %s, session_id, id, %s, 1, 'idle', settings_id, 0, workspace_id from agentmesh.agents"
            " where id = %s",
            [f"abcd123{n}-0000-4000-8000-000000000000", f"twin{n}", mesh.root],
        )
    return "abcd123"


def test_an_id_that_does_not_exist_gives_an_error_entry_also_in_plain_sql(mesh: Mesh):
    call = mesh.call(mesh.root, "wait")[0]
    wanted = [{"agent_id": "ghost", "id": str(unknown())}]
    result = mesh.run(waits.wait_begin, mesh.root, wanted, 30, call)
    assert result is not None
    assert result["results"][0]["agent_id"] == "ghost"
    assert result["results"][0]["error"]
    assert result["results"][0]["hint"]


def test_a_child_forked_in_this_instant_is_running_never_idle(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    result = mesh.wait(mesh.root, a, timeout=0)
    assert result is not None
    assert result["results"] == [entry(a, "a", "running")]


def test_an_idle_child_that_got_new_work_is_running_until_that_turn_ends(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.answer(a, "old answer")
    mesh.send(mesh.root, a, "more work")
    assert mesh.wait(mesh.root, a) is None
    assert mesh.take(mesh.root) is None
    mesh.answer(a, "new answer")
    result = mesh.take(mesh.root)
    assert result is not None
    assert result["results"][0]["output"] == "new answer"


def test_an_idle_entry_has_the_text_its_turn_ended_with(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.answer(a, "the end")
    assert mesh.wait(mesh.root, a) == {"outcome": "complete", "results": [entry(a, "a", "idle", output="the end")]}
    again = mesh.wait(mesh.root, a)
    assert again is not None
    assert again["results"] == [entry(a, "a", "idle", output="the end")], "also after its report was taken"


def test_a_child_killed_while_it_is_waited_for_ends_the_wait(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.kill(a)
    assert mesh.take(mesh.root) == {"outcome": "complete", "results": [entry(a, "a", "dead")]}


def test_mail_and_the_result_that_shows_it_are_one_commit(mesh: Mesh):
    mesh.begin(mesh.root)
    a = mesh.fork(mesh.root, "a", "work")
    mail = mesh.send(a, mesh.root, "report")
    call = mesh.call(mesh.root, "wait")[0]
    mesh.wait(mesh.root, a, lease=call)
    same = mesh.conn.execute(
        "select m.xmax = t.xmin or m.xmin = t.xmin, t.kind, c.status from agentmesh.mail m"
        " join agentmesh.transcript t on t.agent_id = m.recipient and t.seq = m.read_seq"
        " join agentmesh.tool_calls c on c.agent_id = t.agent_id and c.result_seq = t.seq where m.id = %s",
        [mail],
    ).fetchone()
    assert same == (True, "tool_result", "done")


def test_mail_from_the_user_ends_the_wait_and_is_its_last_entry(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.send(None, mesh.root, "stop waiting")
    assert mesh.take(mesh.root) == {
        "outcome": "user",
        "results": [entry(a, "a", "running"), {"name": "user", "message": "stop waiting"}],
    }
    assert mesh.unread(mesh.root) == []


def test_mail_from_the_user_that_lies_there_already_ends_the_wait_at_once(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    call = mesh.call(mesh.root, "wait")[0]
    mesh.send(None, mesh.root, "one")
    mesh.send(None, mesh.root, "two")
    mesh.send(b, mesh.root, "report")
    assert mesh.wait(mesh.root, a, b, lease=call) == {
        "outcome": "user",
        "results": [
            entry(a, "a", "running"),
            entry(b, "b", "received", message="report"),
            {"name": "user", "message": "one"},
        ],
    }
    assert mesh.unread(mesh.root) == ["two"]


def test_mail_of_others_stays_unread(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b", "work")
    call = mesh.call(mesh.root, "wait")[0]
    mesh.send(b, mesh.root, "not asked for")
    assert mesh.wait(mesh.root, a, lease=call) == {
        "outcome": "complete",
        "results": [entry(a, "a", "idle", output="")],
    }
    assert mesh.unread(mesh.root) == ["not asked for"]


def test_an_agent_can_wait_for_its_parent_and_its_brother(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.begin(mesh.root)
    assert mesh.wait(a, mesh.root, b) is None
    mesh.send(mesh.root, a, "from parent")
    mesh.send(b, a, "from brother")
    result = mesh.take(a)
    assert result is not None
    assert [each["message"] for each in result["results"]] == ["from parent", "from brother"]


def test_a_waiter_calls_its_parent_parent_and_a_root_that_has_none_fails_nobody_else(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.run(waits.targets, mesh.session, ["parent"], a) == [{"agent_id": str(mesh.root), "id": str(mesh.root)}]
    alone, other = mesh.run(waits.targets, mesh.session, ["parent", "a"], mesh.root)
    assert (alone["agent_id"], alone["error"]) == ("parent", "the root has no parent")
    assert other["id"] == str(a)


def test_a_list_with_more_names_than_the_session_has_agents_is_refused(mesh: Mesh):
    for n in range(2):
        mesh.fork(mesh.root, f"a{n}")
    names = [f"zz{n}" for n in range(101)]
    with pytest.raises(BadWait, match="from_agents has 101 names, the most here is 100") as refused:
        mesh.run(waits.targets, mesh.session, names)
    assert "once" in refused.value.hint
    assert len(mesh.run(waits.targets, mesh.session, names[:100])) == 100
    mesh.conn.execute("update agentmesh.sessions set max_children = 200, max_agents = 200")
    made = [mesh.fork(mesh.root, f"b{n}") for n in range(101)]
    assert len(mesh.run(waits.targets, mesh.session, list(map(str, made)))) == 101


def test_an_empty_list_is_refused(mesh: Mesh):
    call = mesh.call(mesh.root, "wait")[0]
    with pytest.raises(BadWait, match="empty"):
        mesh.run(waits.targets, mesh.session, [])
    with pytest.raises(BadWait, match="empty"):
        mesh.run(waits.wait_begin, mesh.root, [], 5, call)


@pytest.mark.parametrize("timeout", [-1, -0.001, 86400.5, float("nan"), float("inf"), float("-inf"), 1e308])
def test_a_timeout_out_of_range_is_refused(mesh: Mesh, timeout: float):
    call = mesh.call(mesh.root, "wait")[0]
    with pytest.raises(BadWait, match="between 0 and 86400"):
        mesh.wait(mesh.root, timeout=timeout, lease=call)


@pytest.mark.parametrize("timeout", [0.0001, 0.5, 86400])
def test_a_timeout_may_be_a_fraction_or_a_day(mesh: Mesh, timeout: float):
    assert mesh.wait(mesh.root, timeout=timeout) is None
    waiting = mesh.run(waits.registered, mesh.root)
    assert waiting is not None
    assert waiting.remaining <= timeout


def test_a_second_wait_of_the_same_agent_is_refused(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    first, second = mesh.call(mesh.root, "wait", "wait")
    assert mesh.wait(mesh.root, a, lease=first) is None
    with pytest.raises(WaitBusy, match="root"):
        mesh.wait(mesh.root, lease=second)
    with pytest.raises(WaitBusy):
        mesh.person_waits(mesh.root, a)


def test_the_same_wait_again_after_a_crash_goes_on_as_it_was(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    call = mesh.call(mesh.root, "wait")[0]
    assert mesh.wait(mesh.root, a, lease=call, timeout=100) is None
    deadline = mesh.one("select deadline from agentmesh.wait")
    assert mesh.wait(mesh.root, a, lease=call, timeout=100) is None
    assert mesh.one("select deadline from agentmesh.wait") == deadline


def test_a_wait_survives_its_worker_and_ends_under_the_next(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    call = mesh.call(mesh.root, "wait")[0]
    assert mesh.wait(mesh.root, a, lease=call) is None
    old = mesh.lease(mesh.root)
    mesh.run(workers.release, mesh.worker)
    mesh.send(a, mesh.root, "answer")
    assert mesh.root in mesh.claim(0, mesh.join()), "an agent inside a wait needs no slot"
    with pytest.raises(Fenced):
        mesh.run(waits.wait_take, mesh.root, None, old)
    assert mesh.take(mesh.root) == mesh.result(call)


def test_a_call_that_has_its_result_begins_no_wait(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    call = mesh.call(mesh.root, "wait", "bash")[0]
    mesh.wait(mesh.root, a, timeout=0, lease=call)
    with pytest.raises(CallClosed):
        mesh.wait(mesh.root, a, timeout=0, lease=call)


def test_an_agent_of_another_session_is_out_of_reach(mesh: Mesh):
    stranger = mesh.new_session()
    result = mesh.wait(mesh.root, str(stranger))
    assert result is not None
    assert "error" in result["results"][0]
    call = mesh.call(mesh.root, "wait")[0]
    with pytest.raises(OtherSession):
        mesh.run(waits.wait_begin, mesh.root, [{"agent_id": "x", "id": str(stranger)}], 5, call)


def test_the_dead_wait_for_nobody(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.kill(a)
    with pytest.raises(DeadAgent):
        mesh.person_waits(a)


def test_taking_without_a_wait_takes_nothing(mesh: Mesh):
    mesh.begin(mesh.root)
    assert mesh.take(mesh.root) is None


@pytest.mark.parametrize("final", ["complete", "user", "bogus", ""])
def test_a_wait_is_ended_only_as_timeout_or_interrupted(mesh: Mesh, final: str):
    mesh.fork(mesh.root, "a", "work")
    assert mesh.person_waits(mesh.root) is None
    with pytest.raises(BadWait, match="does not end as"):
        mesh.run(lambda conn: conn.execute("select agentmesh.wait_take(%s, %s)", [mesh.root, final]))
    assert mesh.run(waits.registered, mesh.root) is not None


@pytest.mark.parametrize("final", [None, WaitOutcome.TIMEOUT])
def test_nobody_but_its_worker_takes_the_wait_of_an_agent(mesh: Mesh, final: WaitOutcome | None):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.send(a, mesh.root, "here it is")
    with pytest.raises(AgentBusy, match="is busy"):
        mesh.run(waits.wait_take, mesh.root, final)
    assert mesh.take(mesh.root) == {"outcome": "complete", "results": [entry(a, "a", "received", message="here it is")]}


def test_the_waiter_sees_one_wait_in_plain_sql_too(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.answer(a, "finished")
    targets = json([{"agent_id": "a", "id": str(a)}])
    result = mesh.one("select agentmesh.wait_begin(%s, %s, 5)", mesh.fork(mesh.root, "b"), targets)
    assert result == {"outcome": "complete", "results": [entry(a, "a", "idle", output="finished")]}


def test_interrupt_ends_a_wait_with_what_had_arrived(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    call = mesh.call(mesh.root, "wait")[0]
    assert mesh.wait(mesh.root, a, b, lease=call) is None
    mesh.send(a, mesh.root, "early")
    mesh.interrupt(mesh.root)
    result = mesh.take(mesh.root, WaitOutcome.INTERRUPTED)
    assert result == {
        "outcome": "interrupted",
        "results": [entry(a, "a", "received", message="early"), entry(b, "b", "running")],
    }
    assert mesh.status(mesh.root) is AgentStatus.RUNNING, "its owner ends the turn"


@pytest.mark.parametrize("targets", ["5", "null", "{}", '"x"', "[5]", '[{"id": "zz"}]', '[{"id": 7}]'])
def test_what_is_no_list_of_agents_is_refused_in_words(mesh: Mesh, targets: str):
    with pytest.raises(BadWait, match="from_agents is no list of agents"):
        mesh.run(lambda conn: conn.execute("select agentmesh.wait_begin(%s, %s, 1)", [mesh.root, targets]))
