"""Limits: named in the refusal, with advice, exact also when fifty fork at once."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
import pytest

from agentmesh.domain.errors import (
    AgentsLimit,
    BadArgument,
    ChildrenLimit,
    DepthLimit,
    LimitReached,
    LivingLimit,
    MailboxFull,
    UnknownSession,
)
from agentmesh.domain.ids import SessionId
from agentmesh.store import agents, limits
from agentmesh.store.errors import translated
from tests.fixtures.blocking import sqlstate
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def limit(mesh: Mesh, **limits: float) -> None:
    for name, value in limits.items():
        mesh.conn.execute(f"update agentmesh.sessions set {name} = %s where id = %s", [value, mesh.session])


def test_depth(mesh: Mesh):
    limit(mesh, max_depth=2)
    grandchild = mesh.fork(mesh.fork(mesh.root, "a"), "b")
    with pytest.raises(DepthLimit, match=r"depth 2.*max_depth") as refused:
        mesh.fork(grandchild, "c")
    assert "Do not retry" in refused.value.hint


def test_living_children_and_whom_to_reuse(mesh: Mesh):
    limit(mesh, max_children=2)
    busy, idle = mesh.fork(mesh.root, "busy", "work"), mesh.fork(mesh.root, "lazy")
    with pytest.raises(ChildrenLimit, match=r"2 living children.*max_children") as refused:
        mesh.fork(mesh.root, "third")
    assert "Do not retry" in refused.value.hint
    assert f"lazy ({str(idle)[:8]})" in refused.value.hint
    assert "busy" not in refused.value.hint
    assert "send" in refused.value.hint
    assert "kill" in refused.value.hint
    mesh.kill(busy)
    mesh.fork(mesh.root, "third")


def test_without_an_idle_child_the_advice_is_to_wait_or_kill(mesh: Mesh):
    limit(mesh, max_children=1)
    mesh.fork(mesh.root, "busy", "work")
    with pytest.raises(ChildrenLimit) as refused:
        mesh.fork(mesh.root, "more")
    assert "No child is idle" in refused.value.hint


def test_agents_that_work_or_wait(mesh: Mesh):
    limit(mesh, max_agents=3)
    a = mesh.fork(mesh.root, "a", "work")
    b = mesh.fork(a, "b", "work")
    c = mesh.fork(mesh.root, "c", "work")
    assert mesh.wait(a, b) is None
    with pytest.raises(AgentsLimit, match=r"3 agents of the session work or wait.*max_agents") as refused:
        mesh.fork(mesh.root, "d")
    assert "Wait until some of them have ended" in refused.value.hint
    mesh.begin(c)
    mesh.answer(c, "done")
    mesh.fork(mesh.root, "d", "work")
    with pytest.raises(AgentsLimit):
        mesh.fork(mesh.root, "e", "work")


def test_idle_agents_hold_no_place_of_those_that_work(mesh: Mesh):
    limit(mesh, max_agents=1, max_living=4)
    idle = [mesh.fork(mesh.root, name) for name in ("a", "b", "c")]
    with pytest.raises(LivingLimit, match=r"4 living agents.*max_living") as refused:
        mesh.fork(mesh.root, "d", "work")
    assert "a (" in refused.value.hint
    mesh.kill(idle[0])
    mesh.fork(mesh.root, "d", "work")


def test_ten_times_as_many_live_as_work_if_nothing_is_said(mesh: Mesh):
    limit(mesh, max_agents=2, max_children=50)
    for number in range(19):
        mesh.fork(mesh.root, f"a{number}")
    with pytest.raises(LivingLimit, match="20 living agents"):
        mesh.fork(mesh.root, "b")


def test_an_agent_that_is_woken_counts_from_then_on(mesh: Mesh):
    limit(mesh, max_agents=1)
    idle = mesh.fork(mesh.root, "a")
    mesh.fork(mesh.root, "b")
    mesh.send(None, idle, "work")
    with pytest.raises(AgentsLimit):
        mesh.fork(mesh.root, "c")


def test_idle_sub_agents_of_tasks_hold_no_place_at_all(mesh: Mesh):
    limit(mesh, max_agents=3, max_living=2)
    for number in range(3):
        child = mesh.task(mesh.root, f"t{number}")
        mesh.begin(child)
        mesh.answer(child, "done")
    mesh.fork(mesh.root, "a")
    with pytest.raises(LivingLimit):
        mesh.fork(mesh.root, "b")


def test_unread_mail_counts_per_agent_and_until_it_is_read(mesh: Mesh):
    limit(mesh, max_unread=2)
    a = mesh.fork(mesh.root, "a")
    mesh.send(None, a, "1")
    mesh.send(mesh.root, a, "2")
    with pytest.raises(MailboxFull, match=r"a \(.*full: 2 unread") as refused:
        mesh.send(None, a, "3")
    assert refused.value.hint
    mesh.begin(a)
    mesh.send(None, a, "3")


def test_mail_that_a_wait_is_about_to_take_does_not_count(mesh: Mesh):
    limit(mesh, max_unread=1)
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    assert mesh.wait(mesh.root, a, b) is None
    mesh.send(a, mesh.root, "1")
    mesh.send(b, mesh.root, "2")
    result = mesh.take(mesh.root)
    assert result is not None
    assert result["outcome"] == "complete"


def test_a_full_mailbox_refuses_no_automatic_report(mesh: Mesh):
    limit(mesh, max_unread=1)
    child = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork", "bash")[0])
    mesh.begin(child)
    mesh.send(child, mesh.root, "fills it")
    mesh.send(mesh.root, child, "again")
    mesh.answer(child, "first")
    mesh.answer(child, "report")
    assert len(mesh.unread(mesh.root)) == 2


@pytest.mark.parametrize("limits", [{"max_children": 8}, {"max_agents": 8}, {"max_living": 9}])
def test_exactly_eight_of_fifty_forks_at_once_succeed(mesh: Mesh, database_url: str, limits: dict[str, int]):
    limit(mesh, **limits)
    barrier = threading.Barrier(10)

    def fork_five(_: int) -> int:
        with psycopg.connect(database_url, autocommit=True) as conn:
            barrier.wait()
            done = 0
            for _ in range(5):
                try:
                    with translated():
                        agents.fork(conn, mesh.root, "child", "work")
                    done += 1
                except LimitReached:
                    pass
            return done

    with ThreadPoolExecutor(10) as threads:
        assert sum(threads.map(fork_five, range(10))) == 8
    assert sorted(mesh.column("select name from agentmesh.agents where name <> 'root'")) == sorted(
        ["child", *(f"child-{n}" for n in range(2, 9))]
    )


def test_mailbox_limit_is_exact_when_many_send_at_once(mesh: Mesh, database_url: str):
    limit(mesh, max_unread=7)
    a = mesh.fork(mesh.root, "a")
    barrier = threading.Barrier(6)

    def send_five(_: int) -> int:
        with psycopg.connect(database_url, autocommit=True) as conn:
            barrier.wait()
            done = 0
            for _ in range(5):
                state = sqlstate(lambda: conn.execute("select agentmesh.send(null, %s, 'x')", [a]))
                assert state in (None, "AM022")
                done += state is None
            return done

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(send_five, range(6))) == 7


@pytest.mark.parametrize("limit", ["max_depth", "max_children", "max_living"])
def test_a_limit_below_what_there_is_breaks_no_rule(mesh: Mesh, limit: str):
    for name in ("a", "b"):
        mesh.fork(mesh.fork(mesh.root, name, "work"), f"{name}-child", "work")
    mesh.run(limits.set_limits, mesh.session, {limit: 1})
    assert violations(mesh.conn) == []


def test_made_agents_are_limited_exactly_when_many_fork_at_once(mesh: Mesh):
    mesh.run(limits.set_limits, mesh.session, {"max_spawns": 5, "max_children": 50})

    def fork(number: int) -> str | None:
        with psycopg.connect(mesh.url, autocommit=True) as conn:
            return sqlstate(lambda: agents.fork(conn, mesh.root, f"a{number}"))

    with ThreadPoolExecutor(8) as threads:
        assert Counter(threads.map(fork, range(20))) == {None: 5, "AM038": 15}


@pytest.mark.parametrize(
    "changes",
    [
        {"max_turns": 0},
        {"max_turns": 1.5},
        {"max_spawns": -1},
        {"max_seconds": 2**31},
        {"max_seconds": 315_360_001},
        {"max_agents": None},
        {"max_living": 0},
        {"ask_agents": -1},
        {"max_nonsense": 1},
        {"max_turns": "many"},
        {"max_turns": True},
        {"max_turns": [1]},
    ],
)
def test_no_limit_is_set_to_nonsense(mesh: Mesh, changes):
    before = mesh.run(limits.view, mesh.session)
    with pytest.raises(BadArgument):
        mesh.run(limits.set_limits, mesh.session, {"max_depth": 9, **changes})
    assert [one.cap for one in mesh.run(limits.view, mesh.session)] == [one.cap for one in before]


def test_limits_of_no_session(mesh: Mesh):
    with pytest.raises(UnknownSession):
        mesh.run(limits.set_limits, SessionId(uuid4()), {"max_turns": 1})


def test_what_is_used_is_shown(mesh: Mesh):
    child = mesh.fork(mesh.root, "a")
    mesh.fork(child, "b", "work")
    mesh.kill(mesh.fork(mesh.root, "c"))
    mesh.run(limits.set_limits, mesh.session, {"max_seconds": 60})
    shown = {one.name: (one.cap, one.used) for one in mesh.run(limits.view, mesh.session)}
    assert shown["max_depth"] == (4, 2)
    assert shown["max_children"] == (16, 1)
    assert shown["max_agents"] == (64, 1)
    assert shown["max_living"] == (640, 3)
    assert shown["ask_agents"] == (20, None)
    assert shown["max_spawns"] == (None, 3)
    cap, spent = shown["max_seconds"]
    assert cap is not None
    assert 60 <= cap <= 120
    assert spent is not None
