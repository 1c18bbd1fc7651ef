"""No verb and no statement reads a growing table from end to end, in a database with 100,000 rows of other sessions.

What is counted is what really happened, in nested statements too: scans and rows as PostgreSQL's statistics of the
current transaction tell. (A plan on a small table would prove nothing: there a sequential scan is right.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentmesh.domain.audience import Audience
from agentmesh.domain.budgets import Cap, Unit
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Allowance
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import WaitOutcome
from agentmesh.domain.timers import When
from agentmesh.sql import statement
from agentmesh.store import (
    agents,
    batches,
    board,
    budgets,
    changes,
    conflicts,
    context,
    export,
    files,
    forms,
    leases,
    mailbox,
    merges,
    metrics,
    moves,
    peek,
    person,
    processes,
    requests,
    search,
    send_many,
    sessions,
    snapshots,
    steps,
    tasks,
    timeline,
    timers,
    todos,
    transcript,
    travel,
    waits,
    workers,
    workspaces,
)
from agentmesh.store.processes import ProcessKey
from tests.fixtures.mesh import HOST, MODEL, USER, Mesh
from tests.fixtures.trees import Trees

pytestmark = pytest.mark.timeout(400)

GROWING = ["agents", "file_seen", "mail", "model_calls", "requests", "sessions", "tasks", "tool_calls"]
GROWING += ["bookings", "model_bills", "reservations", "session_usage", "transcript", "waits"]
GROWING += ["changes", "conflicts", "forms", "leases", "merges", "snapshots", "timers", "todos", "workspaces"]
GROWING += ["arrivals", "batches", "batch_items", "moves", "processes"]
"""Not `wait`: it has a row only while an agent waits, and is read whole where that is cheaper."""
MOST_ROWS = 600
"""Rows that a statement may read for its small session; a walk through somebody else's is far more."""
REPEATS = 7
"""More than five: by then plpgsql may have changed to a generic plan."""

CRON = "0 9 * * * UTC"

FOREIGN = Path(__file__).with_name("foreign_sessions.sql")


class Scene:
    """A small session in the large database, with every kind of agent that the verbs need."""

    def __init__(self, mesh: Mesh) -> None:
        self.session = mesh.session
        self.worker = mesh.worker
        self.root = mesh.root
        self.fork_call, self.send_call, self.wait_call, self.kill_call, _ = mesh.call(
            mesh.root, "fork", "send", "wait", "kill", "todo_write"
        )
        self.child = mesh.fork(mesh.root, "child", "work")
        self.finishing = mesh.fork(mesh.root, "finishing", "work")
        self.waiter = mesh.fork(mesh.root, "waiter", "work")
        self.grandchild = mesh.fork(self.child, "grandchild", "work")
        self.idle = mesh.fork(mesh.root, "idle")
        self.todo = mesh.run(todos.add_todo, mesh.session, None, "x")
        self.claimed = mesh.run(todos.add_todo, mesh.session, None, "x", [self.todo])
        mesh.run(todos.finish_todo, mesh.session, None, self.todo)
        mesh.run(todos.claim_todo, mesh.session, self.idle, self.claimed)
        self.ready = mesh.run(todos.add_todo, mesh.session, None, "x", [self.todo])
        self.lease = mesh.lease(mesh.root)
        number = mesh.run(processes.start, self.lease.call(9, 0), "x", "x")
        self.process = ProcessKey(mesh.session, number, mesh.worker)
        self.timer = mesh.run(timers.send_later, None, self.idle, "x", When(after=60))
        cron = mesh.run(timers.send_later, None, self.idle, "x", When(cron=CRON))
        mesh.conn.execute("update agentmesh.timers set due_at = now() where id = %s", [cron])
        self.end = mesh.begin(self.finishing)
        mesh.wait(self.waiter, self.child)
        self.take = mesh.lease(self.waiter)
        self.asked = mesh.send(mesh.root, self.child, "ask")
        mesh.send(self.child, mesh.root, "news", reply_to=self.asked)
        self.targets = mesh.targets(self.child, self.finishing)
        self.queued = mesh.fork(mesh.root, "queued", "work")
        mesh.send(None, self.finishing, "steer")
        self.other_worker = mesh.join()
        self.failed = mesh.fork(mesh.root, "failed", "work")
        mesh.run(steps.fail_turn, mesh.begin(self.failed), {"error": "x"})
        self.asking = mesh.fork(mesh.root, "asking", "work")
        self.request = mesh.ask(self.asking)
        self.giver = mesh.fork(mesh.root, "giver", "work")
        calls = mesh.call(self.giver, "task", "bash", "task", "task", "task")
        task_call, self.ask_call, self.task_call, begun_call, self.batch_call = calls
        self.given = mesh.task(self.giver, "given", task_call)
        mesh.run(batches.batch, begun_call, BATCH, 1)
        self.item = mesh.begin(AgentId(mesh.one("select child from agentmesh.batch_items where state = 'running'")))
        self.blocked = mesh.begin(mesh.fork(mesh.root, "blocked", "work"))
        """Its call waits for the model's first bill."""
        self.formed = mesh.run(agents.fork, mesh.root, "formed", "work", shape=Shape(schema={"type": "object"}))
        mesh.conn.execute("update agentmesh.agents set may_halt = true where id = %s", [self.formed])
        self.report_call = mesh.call(self.formed, "report")[0]
        self._add_trees(mesh)
        self.long = mesh.new_session()
        mesh.conn.execute(
            "insert into agentmesh.transcript (agent_id, seq, kind, content)"
            " select %s, n, case n when 4000 then 'summary' else 'user' end, jsonb_build_object('upto', n - 9)"
            " from generate_series(1, 4100) n",
            [self.long],
        )
        mesh.run(context.mark, self.long)
        quiet = mesh.new_session()
        mesh.conn.execute(
            "insert into agentmesh.transcript (agent_id, seq, kind, content)"
            " select %s, n, 'user', '{}' from generate_series(1, 200) n",
            [quiet],
        )
        self.expired = mesh.session_of(quiet)

    def _add_trees(self, mesh: Mesh) -> None:
        """Give two agents trees of their own, with a merge that is done and one that could be begun."""
        trees = Trees(mesh)
        self.directory = trees.directory
        self.own, other = (trees.own(mesh.root, name) for name in ("own", "other"))
        trees.work(self.own, "src/file-1")
        trees.work(other, "src/file-1")
        trees.merge(mesh.root, self.own, "src/file-1")
        mesh.run(conflicts.note, trees.of(self.own).id, trees.of(other).id, ["src/file-1"], self.own)
        mesh.run(leases.set_prefixes, mesh.session, ["src"])
        self.own_tree = trees.of(self.own).id
        self.work_call = mesh.call(self.own, "bash")[0]
        mesh.run(steps.start_calls, self.work_call, [0])
        self.taken = trees.entry(self.own, "src/file-2")
        self.plan = trees.plan(mesh.root, self.own, "src/file-2")


TASK: dict[str, Any] = {"name": "helper", "prompt": "work", "type": "general-purpose", "model": MODEL}
TASK |= {"system_prompt": "x", "tools": [], "permissions": [], "max_steps": 5}
BATCH: dict[str, Any] = {**TASK, "name": "item", "prompt": "{item}", "items": ["a", "b", "c"], "room": 65536}


def _merge(conn: psycopg.Connection, scene: Scene) -> None:
    begun = merges.begin(conn, scene.plan)
    merges.end(conn, begun.id, told_source="merged", told_target="merged")
    merges.refused(conn, merges.MergePlan(**{**_plan(conn, scene), "result": None}), "conflicts", told="mend it")


def _plan(conn: psycopg.Connection, scene: Scene) -> dict[str, Any]:
    sides = merges.sides(conn, scene.root, scene.own)
    trees = {"base": sides.base, "ours": sides.ours, "theirs": sides.theirs}
    return {"target_agent": scene.root, "source_agent": scene.own, **trees}


def _removal(conn: psycopg.Connection, scene: Scene) -> None:
    agents.kill(conn, scene.own)
    assert [one.id for one in workspaces.unused(conn, HOST, USER)] == [scene.own_tree]
    workspaces.removing(conn, scene.own_tree)
    workspaces.removed(conn, scene.own_tree)
    snapshots.refs(conn, scene.session)
    snapshots.refs(conn, scene.session, reaped_only=True)


def _snapshots(conn: psycopg.Connection, scene: Scene) -> None:
    row = transcript.last_seq(conn, scene.own)
    snapshots.newest_before(conn, scene.own, row)
    snapshots.newest(conn, scene.own_tree)
    snapshots.since(conn, scene.own_tree, 0)
    snapshots.of_agent(conn, scene.own)
    snapshots.over(conn, scene.own_tree, 1)
    context.undone(conn, scene.own, 1)


FAN_OUT = [{"model": MODEL, "agents": 9, "bytes": 1000, "answer": 100, "input_usd": None, "output_usd": None}]


def _fork_that_counts(conn: psycopg.Connection, session: SessionId, parent: AgentId) -> None:
    """Fork in a session in which so many agents were made that all limits are counted."""
    conn.execute("update agentmesh.sessions set tree_version = 100000 where id = %s", [session])
    agents.fork(conn, parent, "new", "x")


def _end_and_delete(conn: psycopg.Connection, session: SessionId) -> None:
    sessions.end_session(conn, session)
    sessions.delete_session(conn, session)


def _timeline(conn: psycopg.Connection, session: SessionId) -> None:
    lanes = timeline.lanes(conn, session)
    ids = [lane.id for lane in lanes]
    assert timeline.busy(conn, ids)
    assert timeline.letters(conn, ids, 1000)
    for agent in ids:
        list(timeline.spans(conn, agent))


_EXPORTED = ("settings", "request", "cost", "workspace", "snapshot", "merge")


def _export(conn: psycopg.Connection, session: SessionId) -> None:
    snap = export.SessionSnapshot(conn, session, 60)
    assert snap.head()
    ids = [row["id"] for row in snap.of_session("agent")]
    for what in (*_EXPORTED, "form", "batch", "batch_item", "todo", "process", "timer"):
        list(snap.of_session(what))
    for what in ("transcript", "tool_call", "task", "model_call", "mail", "unread"):
        for agent in ids:
            list(snap.of_agent(what, agent))


def _erasing(conn: psycopg.Connection, scene: Scene) -> None:
    assert sessions.begin_erasing(conn, scene.expired, 0)
    assert sessions.erase_some(conn, scene.expired, 100) == 100


def _moving(conn: psycopg.Connection, scene: Scene) -> None:
    """Copy a session's rows, and let it depart."""
    digests: dict[str, str] = {}
    for (relation,) in conn.execute("select relation from agentmesh.moved_rows()").fetchall():
        rows = conn.execute("select * from agentmesh.session_rows(%s, %s)", [scene.expired, relation]).fetchall()
        row = conn.execute(
            "select agentmesh.rows_digest(array(select agentmesh.row_hash(r) from unnest(%s::text[]) r))",
            [[text for (text,) in rows]],
        ).fetchone()
        digests[relation] = row[0] if row else ""
    moves.depart(conn, moves.begin(conn, scene.expired, "other"), digests)


CALLS: dict[str, Callable[[psycopg.Connection, Scene], Any]] = {
    "send": lambda c, s: mailbox.send(c, None, s.idle, "x", "key"),
    "send later": lambda c, s: timers.send_later(c, None, s.idle, "x", When(after=60)),
    "send later under a key": lambda c, s: timers.send_later(c, None, s.idle, "x", When(after=60), None, "new"),
    "send again and again": lambda c, s: timers.send_later(c, None, s.idle, "x", When(cron=CRON)),
    "deliver what a cron expression says": lambda c, _s: timers.ring_crons(c),
    "cancel a timer": lambda c, s: timers.cancel(c, s.session, s.timer),
    "timers": lambda c, s: timers.pending(c, s.session),
    "add a todo": lambda c, s: todos.add_todo(c, s.session, s.idle, "x", [s.todo]),
    "claim a todo": lambda c, s: todos.claim_todo(c, s.session, s.idle),
    "claim this todo": lambda c, s: todos.claim_todo(c, s.session, s.idle, s.ready),
    "end a todo": lambda c, s: todos.finish_todo(c, s.session, s.idle, s.claimed, "x"),
    "give a todo back": lambda c, s: todos.release_todo(c, s.session, s.idle, s.claimed),
    "a todo as agents read it": lambda c, s: todos.shown(c, s.todo),
    "a done todo as agents read it": lambda c, s: todos.shown_done(c, s.session, s.todo),
    "the board as agents read it": lambda c, s: todos.shown_board(c, s.session),
    "board of todos": lambda c, s: todos.board(c, s.session),
    "any timer": lambda c, _s: timers.any_pending(c),
    "start a process": lambda c, s: processes.start(c, s.lease.call(9, 0), "x", "x"),
    "processes": lambda c, s: processes.listed(c, s.session),
    "process": lambda c, s: processes.get(c, s.session, s.process.process),
    "processes below an agent": lambda c, s: processes.listed(c, s.session, s.child),
    "process below an agent": lambda c, s: processes.get(c, s.session, s.process.process, s.child),
    "keep output": lambda c, s: processes.keep_output(c, s.process, "x", 1),
    "stop a process": lambda c, s: processes.stop(c, s.session, s.process.process),
    "match a process": lambda c, s: processes.match(c, s.process, "x", 1),
    "watch a process no longer": lambda c, s: processes.unwatch(c, s.process),
    "end a process": lambda c, s: processes.finish(c, s.process, "exited", 0, "x", 1),
    "processes to end": lambda c, s: processes.to_end(c, s.process.worker, [s.process]),
    "lose processes": lambda c, _s: c.execute("select agentmesh.lose_processes()"),
    "send, a tool": lambda c, s: mailbox.send(c, s.root, s.child, "x", None, s.send_call),
    "send to several": lambda c, s: send_many.send_many(c, None, [s.idle, s.child], "x", "key"),
    "send to the children": lambda c, s: send_many.send_many(c, s.root, Audience.CHILDREN, "x", None, s.send_call),
    "send to the session": lambda c, s: send_many.send_many(c, None, Audience.SESSION, "x", "key", around=s.root),
    "answer": lambda c, s: mailbox.send(c, s.child, None, "x", reply_to=s.asked),
    "whom an answer goes to": lambda c, s: mailbox.addressee(c, s.child, s.asked),
    "newest of an agent": lambda c, s: mailbox.newest_of_agents(c, s.child),
    "peek": lambda c, s: peek.peek(c, s.root, 1),
    "fork": lambda c, s: agents.fork(c, s.child, "new", "x"),
    "fork with the last turns": lambda c, s: agents.fork(c, s.long, "new", "x", shape=Shape(context="last 2")),
    "fork, a tool": lambda c, s: agents.fork(c, s.root, "child", "x", s.fork_call),
    "fork that counts": lambda c, s: _fork_that_counts(c, s.session, s.child),
    "estimate of a fan-out": lambda c, s: budgets.fan_out_estimate(c, s.child, FAN_OUT),
    "fork of the past": lambda c, s: travel.fork_at(c, s.child, "new", 0, "x"),
    "copy of the past": lambda c, s: travel.fork_session(c, s.child, 0, "x"),
    "places to go back to": lambda c, s: travel.points(c, s.root),
    "tree of a time": lambda c, s: travel.tree_at(c, s.session, travel.now(c)),
    "search of a session": lambda c, s: search.search(c, "work or news", s.session),
    "search of an agent": lambda c, s: search.search(c, "work", None, s.child),
    "kill": lambda c, s: agents.kill(c, s.child, s.root, s.kill_call),
    "interrupt": lambda c, s: agents.interrupt(c, s.queued),
    "wait begins": lambda c, s: waits.wait_begin(c, s.root, s.targets, 30, s.wait_call),
    "wait for anyone": lambda c, s: waits.wait_begin(c, s.root, None, 30, s.wait_call),
    "wait looks": lambda c, s: waits.wait_take(c, s.waiter, None, s.take),
    "wait ends": lambda c, s: waits.wait_take(c, s.waiter, WaitOutcome.TIMEOUT, s.take),
    "step begins": lambda c, s: steps.begin_step(c, s.end, 0),
    "step waits for the budget": lambda c, s: steps.begin_step(c, s.blocked, 0),
    "budget looked at": lambda c, s: steps.ready(c, [s.blocked.agent_id]),
    "budget raised": lambda c, s: budgets.set_budget(c, s.session, Cap(Unit.USD, Decimal(20))),
    "cap on tokens": lambda c, s: budgets.token_cap(c, s.child),
    "budgets for a screen": lambda c, s: budgets.view(c, s.session),
    "step ends": lambda c, s: steps.finish_step(
        c, s.end, {"text": ""}, [{"call_id": "", "name": "x", "arguments": ""}], {}
    ),
    "turn ends": lambda c, s: steps.finish_step(c, s.end, {"text": ""}, [], {}),
    "turn fails": lambda c, s: steps.fail_turn(c, s.end, {"error": "x"}, {}),
    "ask": lambda c, s: steps.ask(c, s.ask_call, Allowance(), [], [], []),
    "task": lambda c, s: steps.task(c, s.task_call, TASK),
    "call booked alone": lambda c, s: steps.book_call(c, s.end.agent_id, {"turn": 1}),
    "calls start": lambda c, s: steps.start_calls(c, s.send_call, [1]),
    "calls end": lambda c, s: steps.finish_calls(c, s.send_call, {1: {}}, {1: [("/w/f", "0" * 64)]}),
    "open calls": lambda c, s: steps.open_calls(c, s.root),
    "claim": lambda c, s: workers.claim(c, s.other_worker, 4),
    "give back": lambda c, s: workers.give_back(c, s.worker, {s.finishing: s.end.epoch}),
    "claimable": lambda c, s: workers.claimable(c, s.other_worker, 1),
    "release": lambda c, s: workers.release(c, s.worker),
    "tick": lambda c, s: workers.tick(c, s.worker, {s.waiter: s.take.epoch, s.finishing: s.end.epoch}),
    "rename": lambda c, s: agents.rename(c, s.child, "another"),
    "reap": lambda c, s: sessions.reap(c, s.session),
    "end of a session": lambda c, s: sessions.end_session(c, s.session),
    "deletion of a session": lambda c, s: _end_and_delete(c, s.session),
    "context": lambda c, s: transcript.context(c, s.grandchild),
    "context after a summary": lambda c, s: transcript.context(c, s.long),
    "what fills a context": lambda c, s: context.filling(c, s.long),
    "mark": lambda c, s: context.mark(c, s.long),
    "rewind": lambda c, s: (context.mark(c, s.long), context.rewind(c, s.long)),
    "clear": lambda c, s: context.clear(c, s.long),
    "compact": lambda c, s: context.compact(c, s.long),
    "summary": lambda c, s: context.summarize(c, s.end, {"text": "", "upto": 0}, {}, ends=False),
    "own rows": lambda c, s: transcript.own(c, s.finishing),
    "rows for a screen": lambda c, s: board.newest(c, s.root, 300),
    "new rows for a screen": lambda c, s: board.appended(c, s.root, 0, 1000),
    "requests for a screen": lambda c, s: requests.pending(c, s.session),
    "request by a prefix": lambda c, s: requests.resolve(c, str(s.request)[:8]),
    "request answered": lambda c, s: requests.answer(c, s.request, {"decision": "once"}, "me"),
    "batch": lambda c, s: batches.batch(c, s.batch_call, BATCH),
    "end of an item": lambda c, s: steps.finish_step(c, s.item, {"text": "x"}, [], {}),
    "tasks for a screen": lambda c, s: tasks.shown(c, s.session),
    "tasks of a step": lambda c, s: tasks.given(c, s.root, s.send_call.seq or 0),
    "the form of a report": lambda c, s: forms.owed(c, s.formed),
    "the form of no report": lambda c, s: forms.owed(c, s.child),
    "a report": lambda c, s: forms.reported(c, s.formed),
    "a task's report": lambda c, s: forms.reported(c, s.given),
    "rights": lambda c, s: forms.rights(c, s.child),
    "report of a fork": lambda c, s: steps.report(c, s.report_call, {"n": 1}),
    "halt": lambda c, s: steps.halt(c, s.report_call, {"n": 1}),
    "a miss of a fork": lambda c, s: steps.report(c, s.report_call, None, {"error": "x"}),
    "tasks above an agent": lambda c, s: tasks.calls(c, s.grandchild),
    "last row": lambda c, s: transcript.last_seq(c, s.finishing),
    "changes of files": lambda c, s: changes.newest(c, s.child),
    "file known": lambda c, s: files.known(c, s.grandchild, "/w/f"),
    "file written": lambda c, s: files.note_write(c, s.child, 1, "/w/f", "0" * 64),
    "todos": lambda c, s: transcript.todos(c, s.root),
    "session by a prefix": lambda c, s: sessions.resolve(c, str(s.session)[:8]),
    "agent of any session": lambda c, s: agents.anywhere(c, str(s.idle)[:8]),
    "resolve": lambda c, s: agents.resolve(c, s.session, "child"),
    "path resolved": lambda c, s: agents.resolve(c, s.session, "root/child"),
    "path refused": lambda c, s: agents.resolve_all(c, s.session, ["root/child/child"], None),
    "list": lambda c, s: agents.list_agents(c, s.session, s.child, 200),
    "page": lambda c, s: agents.page(c, s.session, 1000, 1000),
    "seen": lambda c, s: person.see(c, s.idle),
    "failed": lambda c, s: (steps.fail_turn(c, s.end, {"error": "x"}, {}), person.failed(c, s.session)),
    "retry": lambda c, s: person.retry(c, s.failed),
    "details for a board": lambda c, s: board.details(c, [s.root, s.child, s.long]),
    "strips for a board": lambda c, s: board.ran(c, [s.root, s.finishing], 600),
    "the newest sessions": lambda c, _s: sessions.list_sessions(c, None, 5),
    "the newest session": lambda c, _s: sessions.list_sessions(c, None, 1),
    "requests of all sessions": lambda c, s: requests.everywhere(c),
    "all sessions for a board": lambda c, s: board.everywhere(c, 5, 5, 5),
    "screen": lambda c, s: _screen(c, s.session, s.child),
    "view": lambda c, s: agents.view(c, s.session),
    "time line": lambda c, s: _timeline(c, s.session),
    "export": lambda c, s: _export(c, s.session),
    "standing": lambda c, s: steps.standing(c, s.work_call),
    "fork with a tree of its own": lambda c, s: agents.fork(c, s.child, "new", "x", workspace="own"),
    "a snapshot of a call": lambda c, s: steps.finish_calls(c, s.work_call, {0: {}}, None, {0: s.taken}),
    "a snapshot of no call": lambda c, s: snapshots.record(c, s.own_tree, "undo", s.taken, agent=s.own, said="x"),
    "snapshots read": _snapshots,
    "merge": _merge,
    "merges read": lambda c, s: (merges.listing(c, s.session), merges.into(c, s.directory), merges.above(c, s.own)),
    "merges unfinished": lambda c, s: merges.unfinished(c, HOST, USER),
    "a tree goes": _removal,
    "workspaces for people": lambda c, s: workspaces.listing(c, s.session),
    "siblings": lambda c, s: workspaces.siblings(c, s.own_tree, ["src/file-1"]),
    "conflicts": lambda c, s: (conflicts.untold(c, s.own), conflicts.listing(c, s.session)),
    "lease": lambda c, s: leases.take(c, s.end, "src/x"),
    "changes by file": lambda c, s: changes.totals(c, s.root),
    "changes by file in SQL": lambda c, s: c.execute(
        "select path, tree_added from agentmesh.v_changes where agent_id = %s", [s.root]
    ).fetchall(),
    "merges in SQL": lambda c, s: c.execute(
        "select state from agentmesh.v_merges where session_id = %s", [s.session]
    ).fetchall(),
    "rewind to a row": lambda c, s: (context.rewind_to(c, s.long, 4050), context.restore(c, s.long)),
    "busy": lambda c, s: agents.busy(c, s.session),
    "expired sessions": lambda c, _s: (sessions.expired(c, 0, HOST, USER), sessions.half_erased(c, HOST, USER)),
    "erase a session": _erasing,
    "moves": lambda c, s: (moves.departed(c, str(s.session)[:8]), moves.unfinished(c), moves.arrivals(c)),
    "move a session": _moving,
    "output": lambda c, s: agents.last_output(c, s.finishing),
    "who works": lambda c, s: agents.working(c, [s.child, s.finishing], [s.session]),
    "how they ended": lambda c, s: agents.endings(c, [s.child, s.finishing], [s.session]),
}


def _screen(conn: psycopg.Connection, session: SessionId, wanted: AgentId) -> None:
    shown = [one.view.id for one in board.agents(conn, session, [wanted])]
    board.waits(conn, shown)
    board.pending(conn, shown)
    board.used(conn, session, shown)
    board.working(conn, session)
    board.left(conn, session)


@pytest.fixture
def big_url(database_url: str) -> str:
    """A database with 1,000 foreign sessions, 11,000 agents and more than 100,000 rows in each large table."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(FOREIGN.read_text())
        conn.execute("vacuum analyze")
    return database_url


def counters(probe: psycopg.Connection) -> dict[str, tuple[int, int, int]]:
    """Return sequential scans, scans of indexes and rows read so far, by table."""
    rows = probe.execute(
        "select relname, seq_scan, coalesce(idx_scan, 0), seq_tup_read + coalesce(idx_tup_fetch, 0)"
        " from pg_stat_xact_user_tables where schemaname = 'agentmesh' and relname = any (%s)",
        [GROWING],
    )
    return {table: tuple(counts) for table, *counts in rows}


def reads(probe: psycopg.Connection, call: Callable[[psycopg.Connection], Any]) -> dict[str, str]:
    """Make the call, again and again; return the tables that it read from end to end, or in which it read too much."""
    before = counters(probe)
    for _ in range(REPEATS):
        probe.execute("savepoint before")
        call(probe)
        probe.execute("rollback to savepoint before")
    after = counters(probe)
    probe.rollback()
    made = {table: [now - then for now, then in zip(after[table], before[table], strict=True)] for table in after}
    # Where a vacuum has just been, an index alone may tell all: then no row is read.
    assert any(any(counts) for counts in made.values()), "it reads something"
    return {
        table: f"{scans} scans, {rows // REPEATS} rows a call"
        for table, (scans, _, rows) in made.items()
        if scans or rows // REPEATS > MOST_ROWS
    }


# One test, because making that database is what takes the time.
@pytest.mark.slow
def test_no_call_reads_a_growing_table_from_end_to_end(big_url: str):
    with psycopg.connect(big_url, autocommit=True) as conn, psycopg.connect(big_url) as probe:
        scene = Scene(Mesh(conn))
        too_much = {name: found for name, call in CALLS.items() if (found := reads(probe, lambda c: call(c, scene)))}  # noqa: B023
        assert too_much == {}
        found = reads(probe, metrics.mesh)
        assert {table: words.partition(",")[0] for table, words in found.items()} == {"agents": "0 scans"}, (
            "figures of the whole mesh take one look for each of its running agents"
        )
        walk = "select from agentmesh.transcript where content ->> 'text' = 'nobody said this'"
        assert set(reads(probe, lambda c: c.execute(walk))) == {"transcript"}, "the check can turn red"

        query = "explain (costs off) " + statement("transcript.context")
        plan = "\n".join(row[0] for row in conn.execute(query, {"agent": scene.grandchild, "upto": None}))
        assert "transcript_pkey" in plan, "per link of the chain, by the primary key"
        assert "Hash Join" not in plan


def test_mail_is_read_by_its_index_also_where_the_figures_are_older_than_the_mail(mesh: Mesh):
    """ANALYZE saw an empty table, the connection keeps its plans, and nothing makes new ones while mail piles up."""
    mesh.conn.execute("alter table agentmesh.mail set (autovacuum_enabled = off)")
    mesh.conn.execute("vacuum analyze agentmesh.mail")
    waiter, early, late = (mesh.fork(mesh.root, name, "work") for name in ("waiter", "early", "late"))

    numbers = itertools.count()

    def fan_in() -> dict[str, int]:
        """Let the waiter wait for both and read a steer; return how much mail each statement read."""
        read = {}
        for what, call in {
            "wait begins": lambda: mesh.wait(waiter, early, late),
            "send": lambda: mesh.send(early, waiter),
            "look": lambda: mesh.take(waiter),
            "send again": lambda: mesh.send(late, waiter),
            "take": lambda: mesh.take(waiter),
            "third send": lambda: mesh.send(None, waiter),
            "step begins": lambda: mesh.begin(waiter),
            "turn ends": lambda: mesh.run(steps.finish_step, mesh.lease(waiter), {"text": "x"}, [], {}),
            "claim": lambda: mesh.begin(waiter),
            "fork": lambda: mesh.fork(mesh.root, f"helper-{next(numbers)}", "work"),
            "turn fails": lambda: mesh.run(steps.fail_turn, mesh.lease(waiter), {"error": "x"}, {}),
            "kill": lambda: mesh.kill(mesh.fork(waiter, "child", "work")),
        }.items():
            with mesh.conn.transaction():
                before = counters(mesh.conn)["mail"]
                call()
                read[what] = counters(mesh.conn)["mail"][2] - before[2]
        return read

    for _ in range(REPEATS):
        fan_in()
    mesh.conn.execute(
        "insert into agentmesh.mail (session_id, recipient, body, read_at, read_seq)"
        " select %s, %s, 'x', now(), 1 from generate_series(1, 3000)",
        [mesh.session, mesh.root],
    )
    assert {what: rows for what, rows in fan_in().items() if rows > MOST_ROWS} == {}


def test_a_fork_counts_those_that_work_and_reads_no_idle_agents(mesh: Mesh):
    mesh.conn.execute("alter table agentmesh.agents set (autovacuum_enabled = off)")
    root = mesh.new_session(max_children=1000)
    for n in range(200):
        mesh.fork(root, f"a{n}")
    mesh.conn.execute("vacuum analyze agentmesh.agents, agentmesh.sessions")

    def fork(name: str) -> int:
        """Make an agent; return how many agents were read."""
        with mesh.conn.transaction():
            before = counters(mesh.conn)["agents"][2]
            mesh.fork(root, name, "work")
            return counters(mesh.conn)["agents"][2] - before

    for n in range(REPEATS):
        fork(f"b{n}")
    assert fork("c") <= 20 + REPEATS


def test_a_claim_asks_no_more_of_the_queue_than_it_takes_also_where_the_figures_are_older_than_the_queue(mesh: Mesh):
    """A worker claims once for each agent that comes to rest: with the whole queue in it, work grows by its square."""
    for table in ("agents", "wait"):
        mesh.conn.execute(f"alter table agentmesh.{table} set (autovacuum_enabled = off)")
    queued = 100
    root = mesh.new_session(max_children=queued, max_agents=2 * queued)
    crowd = [mesh.fork(root, f"a{n}") for n in range(queued)]
    mesh.conn.execute("vacuum analyze agentmesh.agents, agentmesh.wait")
    for agent in crowd:
        mesh.send(None, agent)
    mesh.conn.execute("set track_functions = 'all'")
    calls = "select coalesce(sum(calls), 0)::integer from pg_stat_xact_user_functions where funcname = 'serves'"

    def counted() -> tuple[int, int]:
        ((served,),) = mesh.conn.execute(calls)
        return counters(mesh.conn)["agents"][2], served

    def claim(*, waits: bool) -> tuple[int, int]:
        """Claim one; return how many agents were read, and of how many it was asked whether the worker serves them."""
        with mesh.conn.transaction():
            read, served = counted()
            assert len(workers.claim(mesh.conn, mesh.worker, 1, waits=waits)) == 1
            now_read, now_served = counted()
            return now_read - read, now_served - served

    for _ in range(REPEATS):
        claim(waits=True)
        claim(waits=False)
    read, served = claim(waits=False)
    assert read <= 5
    assert served <= 5
    read, served = claim(waits=True)
    assert read >= queued - 3 * REPEATS, "it walks the queue, to find those that are inside a wait"
    assert served <= 5
