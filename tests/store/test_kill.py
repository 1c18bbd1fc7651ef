"""kill: the target and all below it in one commit, their calls answered, their death the last row."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import (
    CallClosed,
    DeadAgent,
    Fenced,
    NotDescendant,
    OtherSession,
    RootUnkillable,
    UnknownAgent,
)
from agentmesh.domain.states import AgentStatus
from agentmesh.store import steps, waits
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def test_target_and_descendants_die_in_one_commit_target_first(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    b, c = mesh.fork(a, "b", "work"), mesh.fork(a, "c")
    d = mesh.fork(b, "d", "work")
    bystander = mesh.fork(mesh.root, "bystander")
    assert [(ref.id, ref.name) for ref in mesh.kill(a)] == [(a, "a"), (b, "b"), (c, "c"), (d, "d")]
    assert mesh.one("select count(distinct xmin::text) from agentmesh.agents where status = 'dead'") == 1
    assert mesh.one("select count(*) from agentmesh.agents where status = 'dead'") == 4
    assert mesh.status(bystander) is AgentStatus.IDLE


def test_a_second_kill_returns_nobody_and_is_no_error(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.kill(a)
    assert mesh.kill(a) == []
    assert len(mesh.rows(a)) == 1


def test_those_who_died_before_are_not_told_again(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    b = mesh.fork(a, "b")
    mesh.kill(b)
    assert [ref.id for ref in mesh.kill(a)] == [a]


def test_open_calls_get_their_result_before_the_death_event_which_is_the_last_row(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    done, started, still_open = mesh.call(a, "read", "bash", "wait")
    mesh.finish(done, {"output": "kept"})
    mesh.run(steps.start_calls, started, [1])
    mesh.kill(a)
    assert mesh.result(done) == {"output": "kept"}
    for call in (started, still_open):
        assert mesh.result(call) == {"error": "killed"}
    kind, content = mesh.rows(a)[-1]
    assert (kind, content["event"], content["text"]) == ("event", "killed", "killed by the user")
    assert [kind for kind, _ in mesh.rows(a)] == ["user", "assistant", *["tool_result"] * 3, "event"]
    seqs = mesh.column("select seq from agentmesh.transcript where agent_id = %s order by seq", a)
    assert seqs == list(range(1, 7))
    assert mesh.one("select tool_calls from agentmesh.agents where id = %s", a) == 3


def test_the_victims_wait_is_gone(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    call = mesh.call(a, "wait")[0]
    mesh.wait(a, b, lease=call)
    mesh.kill(a)
    assert mesh.run(waits.registered, a) is None
    assert mesh.one("select count(*) from agentmesh.waits") == 0
    assert mesh.result(call) == {"error": "killed"}


def test_its_owner_writes_nothing_any_more_but_can_book_what_was_used(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    mesh.kill(a)
    last = mesh.rows(a)[-1]
    for write in (
        lambda: mesh.run(steps.finish_step, lease, {"text": "late"}, [], {}),
        lambda: mesh.run(steps.begin_step, lease, 0),
        lambda: mesh.run(steps.fail_turn, lease, {"error": "late"}),
        lambda: mesh.run(steps.stop_turn, lease, {"text": "late"}),
        lambda: mesh.run(steps.skip_turn, lease),
    ):
        with pytest.raises(Fenced, match="a "):
            write()
    mesh.run(steps.book_call, a, {"input_tokens": 5, "output_tokens": 1, "cost_usd": 0.25})
    assert mesh.rows(a)[-1] == last
    assert mesh.one("select tokens from agentmesh.v_agents where id = %s", a) == 6


def test_as_a_tool_its_result_names_who_died(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    b = mesh.fork(a, "b", "work")
    call = mesh.call(mesh.root, "kill", "kill")
    mesh.kill(a, mesh.root, call[0])
    assert mesh.result(call[0]) == {"killed": [{"agent_id": str(a), "name": "a"}, {"agent_id": str(b), "name": "b"}]}
    mesh.kill(a, mesh.root, call[1])
    assert mesh.result(call[1]) == {"killed": []}
    assert mesh.rows(a)[-1][1]["text"] == "killed by root"
    assert mesh.one("select killed_by from agentmesh.agents where id = %s", b) == mesh.root
    with pytest.raises(CallClosed):
        mesh.kill(b, mesh.root, call[0])


def test_the_root_itself_ancestors_brothers_and_strangers_are_refused(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    child = mesh.fork(a, "child")
    stranger = mesh.fork(mesh.new_session(), "stranger")
    for target, by, error in (
        (mesh.root, None, RootUnkillable),
        (mesh.root, a, RootUnkillable),
        (a, a, NotDescendant),
        (a, child, NotDescendant),
        (b, a, NotDescendant),
        (child, b, NotDescendant),
        (stranger, mesh.root, OtherSession),
        (unknown(), mesh.root, UnknownAgent),
        (unknown(), None, UnknownAgent),
        (child, unknown(), UnknownAgent),
    ):
        with pytest.raises(error) as refused:
            mesh.kill(target, by)
        assert refused.value.hint
    assert mesh.one("select count(*) from agentmesh.agents where status = 'dead'") == 0
    assert [ref.id for ref in mesh.kill(child, mesh.root)] == [child], "a grandchild is a descendant"


def test_the_dead_kill_nobody(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    b = mesh.fork(a, "b")
    mesh.conn.execute("select agentmesh.bury(array[%s]::uuid[], %s, null)", [a, mesh.session])
    with pytest.raises(DeadAgent, match=r"a \("):
        mesh.kill(b, a)


def test_a_stale_lease_kills_nobody(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    call = mesh.call(mesh.root, "kill")[0]
    mesh.conn.execute("select agentmesh.release_worker(%s)", [mesh.worker])
    with pytest.raises(Fenced):
        mesh.kill(a, mesh.root, call)
    assert mesh.status(a) is AgentStatus.IDLE


def test_mail_sent_before_death_stays_and_new_mail_is_refused(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b", "work")
    mesh.begin(b)
    mesh.send(a, b, "last words")
    mesh.send(b, a, "unread for ever")
    mesh.kill(a)
    assert mesh.unread(b) == ["last words"]
    with pytest.raises(DeadAgent):
        mesh.send(b, a, "too late")


def test_the_dead_own_nothing_and_their_epoch_rises(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    epoch = mesh.begin(a).epoch
    mesh.kill(a)
    row = mesh.conn.execute(
        "select worker_id, epoch, died_at is not null from agentmesh.agents where id = %s", [a]
    ).fetchone()
    assert row == (None, epoch + 1, True)


def test_in_plain_sql_it_is_a_table(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    assert mesh.conn.execute("select name from agentmesh.kill(%s)", [a]).fetchall() == [("a",)]
