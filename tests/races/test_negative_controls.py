"""The rules of the lock protocol, each with the broken variant that shows why it is there.

Every check below is green on the functions as they are, and red with the variant of its rule installed (``variants/``,
named after docs/explanation/architecture.md, "Locks"). A check that cannot turn red proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from agentmesh.store import agents, mailbox, merges, steps, waits, workers
from tests.fixtures.blocking import Stage, sqlstate
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh, ids
from tests.fixtures.trees import Trees

VARIANTS = Path(__file__).parent / "variants"


def sends_to_each_other_deadlock(mesh: Mesh, stage: Stage) -> list[str]:
    """One waits for the lower id, which somebody holds who then needs the higher: it must hold nothing itself."""
    ids(mesh.conn, descending=True)
    high, low = mesh.fork(mesh.root, "high", "work"), mesh.fork(mesh.root, "low", "work")
    stage.holder.execute("select agentmesh.lock_agents(array[%s]::uuid[])", [low])
    other = stage.meanwhile(lambda conn: mailbox.send(conn, high, low, "x"), blocks=True)
    states = [sqlstate(lambda: mailbox.send(stage.holder, low, high, "y"))]
    stage.holder.rollback() if states[0] else stage.holder.commit()
    states.append(sqlstate(other.result))
    return [state for state in states if state]


def a_kill_deadlocks_with_a_send(mesh: Mesh, stage: Stage) -> list[str]:
    """The victims lie in the table in descending order of their ids."""
    ids(mesh.conn, descending=True)
    target = mesh.fork(mesh.root, "target")
    low = [mesh.fork(target, f"child{n}") for n in range(3)][-1]
    stage.holder.execute("select agentmesh.lock_agents(array[%s]::uuid[])", [low])
    other = stage.meanwhile(lambda conn: agents.kill(conn, target), blocks=True)
    states = [sqlstate(lambda: mailbox.send(stage.holder, low, target, "x"))]
    stage.holder.rollback() if states[0] else stage.holder.commit()
    states.append(sqlstate(other.result))
    return [state for state in states if state]


def the_end_of_a_turn_loses_mail(mesh: Mesh, stage: Stage) -> list[str]:
    a = mesh.fork(mesh.root, "a", "work")
    lease = mesh.begin(a)
    mailbox.send(stage.holder, mesh.root, a, "news")
    end = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, {"text": "bye"}, [], {}), blocks=True)
    stage.holder.commit()
    end.result()
    return violations(mesh.conn)


def a_waiter_is_not_told(mesh: Mesh, stage: Stage) -> list[str]:
    """The waiter is a brother: a child that ends its turn locks its parent, which would hide the fault."""
    a, waiter = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "waiter", "work")
    call, targets, lease = mesh.call(waiter, "wait")[0], mesh.targets(a), mesh.begin(a)
    mesh.conn.execute(f'listen "agent_event_{waiter}"')
    assert waits.wait_begin(stage.holder, waiter, targets, 30, call) is None
    end = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, {"text": "x"}, [], {}))
    stage.holder.commit()
    end.result()
    mesh.conn.execute("select")
    heard = [note.payload for note in mesh.conn.notifies(timeout=0)]
    return [] if "waited" in heard else ["the wait is met and nobody was told"]


def a_wait_that_begins_meanwhile_is_not_rung(mesh: Mesh, stage: Stage) -> list[str]:
    """The wait has looked, and is not committed: who sends now must wait for it, and then ring."""
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    call, targets = mesh.call(mesh.root, "wait")[0], mesh.targets(a)
    mesh.conn.execute(f'listen "agent_event_{mesh.root}"')
    assert waits.wait_begin(stage.holder, mesh.root, targets, 30, call) is None
    sent = stage.meanwhile(lambda conn: mailbox.send(conn, a, mesh.root, "news"), blocks=None)
    stage.holder.commit()
    sent.result()
    return _unheard(mesh)


def what_ends_no_wait_silences_what_does(mesh: Mesh, stage: Stage) -> list[str]:
    """A report of an agent that still runs ends no wait for it."""
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    call = mesh.call(mesh.root, "wait")[0]
    mesh.conn.execute(
        "insert into agentmesh.mail (session_id, sender, recipient, body, automatic) values (%s, %s, %s, 'done', true)",
        [mesh.session, a, mesh.root],
    )
    assert mesh.wait(mesh.root, a, lease=call) is None
    mesh.conn.execute(f'listen "agent_event_{mesh.root}"')
    mesh.send(a, mesh.root)
    return _unheard(mesh)


def _unheard(mesh: Mesh) -> list[str]:
    mesh.conn.execute("select")
    heard = [note.payload for note in mesh.conn.notifies(timeout=0)]
    return [] if "mail" in heard else ["the wait can end and nobody was told"]


def a_ring_of_four_closes(mesh: Mesh, stage: Stage) -> list[str]:
    a, b, c, d = (mesh.fork(mesh.root, name, "work") for name in "abcd")
    calls = {agent: mesh.call(agent, "wait")[0] for agent in (a, b, c, d)}
    to = {agent: mesh.targets(agent) for agent in (a, b, c, d)}
    waits.wait_begin(mesh.conn, a, to[b], 30, calls[a])
    waits.wait_begin(mesh.conn, c, to[d], 30, calls[c])
    waits.wait_begin(stage.holder, b, to[c], 30, calls[b])
    other = stage.meanwhile(lambda conn: waits.wait_begin(conn, d, to[a], 30, calls[d]))
    stage.holder.commit()
    sqlstate(other.result)
    return violations(mesh.conn)


def a_kill_in_repeatable_read_leaves_an_orphan(mesh: Mesh, stage: Stage) -> list[str]:
    a = mesh.fork(mesh.root, "a")
    stage.holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    stage.holder.execute("select count(*) from agentmesh.agents")
    mesh.fork(a, "child", "work")
    stage.holder.rollback() if sqlstate(lambda: agents.kill(stage.holder, a)) else stage.holder.commit()
    return violations(mesh.conn)


def a_reader_stops_every_fork(mesh: Mesh, stage: Stage) -> list[str]:
    """A role that may only read takes whatever lock it can get."""
    stage.holder.execute("set session authorization agentmesh_reader")
    stage.holder.commit()
    stage.holder.execute("select pg_advisory_lock(hashtext(%s::text))", [mesh.session])
    fork = stage.meanwhile(lambda conn: agents.fork(conn, mesh.root, "child"), blocks=None)
    blocked = not fork.ended
    stage.holder.close()
    fork.result()
    return ["a fork waits for a reader"] if blocked else []


def a_foreign_key_check_hides_an_agent_from_claim(mesh: Mesh, stage: Stage) -> list[str]:
    a = mesh.fork(mesh.root, "a", "work")
    stage.holder.execute("insert into agentmesh.activity (agent_id, activity) values (%s, 'queued')", [a])
    return [] if workers.claim(stage.other, mesh.worker, 1) else ["the queued agent was not claimed"]


def a_worker_that_skipped_an_agent_is_not_told(mesh: Mesh, stage: Stage) -> list[str]:
    a = mesh.fork(mesh.root, "a", "work")
    mailbox.send(stage.holder, None, a, "more")
    mesh.conn.execute("listen agentmesh_work")
    assert workers.claim(mesh.conn, mesh.worker, 1) == []
    stage.holder.commit()
    mesh.conn.execute("select")
    heard = list(mesh.conn.notifies(timeout=0))
    return [] if heard else ["the agent can be claimed and nobody was told"]


def an_interrupted_agent_is_not_idle(mesh: Mesh, stage: Stage) -> list[str]:
    a = mesh.fork(mesh.root, "a", "work")
    mesh.send(mesh.root, a, "more")
    agents.interrupt(mesh.conn, a)
    return [*([] if mesh.status(a) == "idle" else ["it started again at once"]), *violations(mesh.conn)]


def two_calls_pass_a_cap_that_fits_one(mesh: Mesh, stage: Stage) -> list[str]:
    calls = [mesh.call(mesh.fork(mesh.root, name, "work"), "bash")[0] for name in "ab"]
    for call in calls:
        mesh.finish(call)
    mesh.conn.execute("insert into agentmesh.model_bills (model) values ('demo/demo')")
    mesh.conn.execute("update agentmesh.sessions set max_tokens = 3000")
    planned = steps.Planned(answer_tokens=2000)
    first = steps.begin_step(stage.holder, calls[0], 2**62, planned=planned)
    other = stage.meanwhile(lambda conn: steps.begin_step(conn, calls[1], 2**62, planned=planned))
    stage.holder.commit()
    allowed = [begun for begun in (first, other.result()) if begun.granted.answer_tokens]
    return [] if len(allowed) == 1 else [f"{len(allowed)} calls fit where there is room for one"]


def merges_deadlock(mesh: Mesh, stage: Stage) -> list[str]:
    """One waits for the lower id, which somebody holds who then needs the higher: it must hold nothing itself."""
    trees = Trees(mesh)
    child = trees.own(mesh.root, "child")
    plan = trees.plan(mesh.root, child)
    low, high = sorted((trees.directory, trees.of(child).id))
    stage.holder.execute("select agentmesh.lock_workspaces(array[%s]::uuid[])", [low])
    other = stage.meanwhile(lambda conn: merges.begin(conn, plan), blocks=True)
    states = [sqlstate(lambda: stage.holder.execute("select agentmesh.lock_workspaces(array[%s]::uuid[])", [high]))]
    stage.holder.rollback()
    states.append(sqlstate(other.result))
    return [state for state in states if state]


def a_merge_of_older_trees_begins(mesh: Mesh, stage: Stage) -> list[str]:
    trees = Trees(mesh)
    child = trees.own(mesh.root, "child")
    (call,) = mesh.call(child, "bash")
    plan = trees.plan(mesh.root, child)
    steps.finish_calls(stage.holder, call, {0: {}}, None, {0: trees.entry(child, "a.txt")})
    other = stage.meanwhile(lambda conn: merges.begin(conn, plan))
    stage.holder.commit()
    return [] if sqlstate(other.result) == "AM081" else ["a step's files are not in the merge, and nobody says so"]


def a_step_is_lost_at_the_end_of_a_merge(mesh: Mesh, stage: Stage) -> list[str]:
    trees = Trees(mesh)
    child = trees.own(mesh.root, "child")
    (call,) = mesh.call(mesh.root, "bash")
    begun = trees.begin(mesh.root, child)
    steps.finish_calls(stage.holder, call, {0: {}}, None, {0: trees.entry(mesh.root, "a.txt")})
    other = stage.meanwhile(lambda conn: merges.end(conn, begun.id))
    stage.holder.commit()
    return [] if sqlstate(other.result) == "AM081" else ["the newest tree has not what the step changed"]


Check = Callable[[Mesh, Stage], list[str]]
CONTROLS: dict[str, Check] = {
    "a1_own_row_first": sends_to_each_other_deadlock,
    "a2_kill_in_heap_order": a_kill_deadlocks_with_a_send,
    "a3_settle_in_one_statement": the_end_of_a_turn_loses_mail,
    "a4_targets_not_locked": a_waiter_is_not_told,
    "a5_circle_without_the_tree_lock": a_ring_of_four_closes,
    "a6_any_isolation_level": a_kill_in_repeatable_read_leaves_an_orphan,
    "a7_advisory_tree_lock": a_reader_stops_every_fork,
    "a8a_claim_for_update": a_foreign_key_check_hides_an_agent_from_claim,
    "a8b_no_work_hint": a_worker_that_skipped_an_agent_is_not_told,
    "a10_interrupt_without_mark": an_interrupted_agent_is_not_idle,
    "a10_idle_all_the_same": an_interrupted_agent_is_not_idle,
    "a11_reserve_without_the_lock": two_calls_pass_a_cap_that_fits_one,
    "a11_used_without_reserved": two_calls_pass_a_cap_that_fits_one,
    "a12_ring_without_the_lock": a_wait_that_begins_meanwhile_is_not_rung,
    "a12_any_mail_silences": what_ends_no_wait_silences_what_does,
    "b1_workspaces_in_any_order": merges_deadlock,
    "b2_sides_from_before_the_lock": a_merge_of_older_trees_begins,
    "b3_snapshots_without_the_lock": a_step_is_lost_at_the_end_of_a_merge,
}


@pytest.mark.parametrize("variant", CONTROLS)
def test_green_as_it_is(mesh: Mesh, stage: Stage, variant: str):
    assert CONTROLS[variant](mesh, stage) == []


@pytest.mark.parametrize("variant", CONTROLS)
def test_red_with_the_broken_variant(mesh: Mesh, stage: Stage, variant: str):
    mesh.conn.execute((VARIANTS / f"{variant}.sql").read_text())
    assert CONTROLS[variant](mesh, stage) != []


def test_every_variant_has_its_check():
    assert {path.stem for path in VARIANTS.glob("*.sql")} == set(CONTROLS)
