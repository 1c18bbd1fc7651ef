"""docs/reference/errors.md is true and complete: what it says that the database raises is raised, word for word."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from agentmesh.domain import errors
from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import AgentId, MailId, SessionId
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import WaitOutcome
from agentmesh.domain.timers import When
from agentmesh.store import (
    agents,
    code,
    context,
    external,
    limits,
    mailbox,
    merges,
    moves,
    processes,
    requests,
    schema,
    send_many,
    sessions,
    snapshots,
    steps,
    timers,
    todos,
    travel,
    waits,
    workers,
    workspaces,
)
from agentmesh.store.errors import translated
from agentmesh.store.pool import connect, describe
from agentmesh.store.tx import Database
from tests.fixtures.mesh import Mesh, unknown
from tests.fixtures.trees import Trees

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"


class Line(NamedTuple):
    """A row of the first table."""

    code: str
    kind: str
    exit_code: str
    sentence: str
    hint: str


def rows(width: int) -> list[list[str]]:
    """Return the rows of so many cells of the tables that people write; the last one is made from the code."""
    lines = [
        re.split(r" (?<!\\)\| ", line.strip("| "))
        for line in DOCUMENT.read_text().split("<!-- generated: ")[0].splitlines()
        if line.startswith("| AM")
    ]
    return [[cell.strip().replace("\\|", "|") for cell in line] for line in lines if len(line) == width]


LINES = [Line(*row) for row in rows(5)]
OTHERS = {row[1]: row for row in rows(4)}
TREE = {
    name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.AgentmeshError)
}


def stranger(mesh: Mesh) -> Any:
    return mesh.new_session()


def limit(mesh: Mesh, **values: float) -> None:
    for name, value in values.items():
        mesh.conn.execute(f"update agentmesh.sessions set {name} = %s", [value])


def fenced(mesh: Mesh) -> None:
    lease = mesh.begin(mesh.root)
    mesh.run(workers.release, mesh.worker)
    mesh.run(steps.begin_step, lease, 0)


def declared_dead(mesh: Mesh) -> None:
    mesh.run(workers.release, mesh.worker)
    mesh.claim()


def call_closed(mesh: Mesh) -> None:
    call = mesh.call(mesh.root, "fork")[0]
    mesh.finish(call)
    mesh.fork(mesh.root, "a", "x", call)


def urgent_mail_first(mesh: Mesh) -> None:
    call = mesh.call(mesh.root, "fork")[0]
    mesh.send(None, mesh.root, urgent=True)
    mesh.fork(mesh.root, "a", "x", call)


def wrong_isolation(mesh: Mesh) -> None:
    mesh.conn.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    mesh.conn.autocommit = False
    mesh.send(None, mesh.root)


def turn_interrupted(mesh: Mesh) -> None:
    lease = mesh.begin(mesh.root)
    mesh.interrupt(mesh.root)
    mesh.run(steps.begin_step, lease, 0)


def dead(mesh: Mesh) -> None:
    a = mesh.fork(mesh.root, "a")
    mesh.kill(a)
    mesh.send(None, a)


def dead_with_its_session(mesh: Mesh) -> None:
    mesh.run(sessions.end_session, mesh.session)
    mesh.send(None, mesh.root)


def wait_for_a_stranger(mesh: Mesh) -> None:
    mesh.run(waits.wait_begin, mesh.root, [{"agent_id": "x", "id": str(stranger(mesh))}], 5)


def ambiguous(mesh: Mesh) -> None:
    for n in (1, 2):
        mesh.conn.execute(
            "insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, settings_id, forked_at,"
            " workspace_id)"
            " select %s, session_id, id, %s, 1, 'idle', settings_id, 0, workspace_id from agentmesh.agents"
            " where id = %s",
            [f"abcd123{n}-0000-4000-8000-000000000000", f"twin{n}", mesh.root],
        )
    mesh.run(agents.resolve, mesh.session, "abcd123")


def session_ended(mesh: Mesh) -> None:
    mesh.conn.execute("select agentmesh.end_session(%s)", [mesh.session])
    mesh.fork(mesh.root, "a")


def session_running(mesh: Mesh) -> None:
    mesh.send(None, mesh.root)
    mesh.conn.execute("select agentmesh.delete_session(%s)", [mesh.session])


def erased(mesh: Mesh) -> SessionId:
    mesh.conn.execute("update agentmesh.sessions set erasing_at = now() where id = %s", [mesh.session])
    return mesh.session


def moved_while_it_runs(mesh: Mesh) -> None:
    mesh.send(None, mesh.root)
    mesh.run(moves.begin, mesh.session, "other")


def moved_with_a_process(mesh: Mesh) -> None:
    mesh.conn.execute(
        "insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command)"
        " values (%s, 1, %s, 1, 0, 1, 'x')",
        [mesh.session, mesh.root],
    )
    mesh.run(moves.begin, mesh.session, "other")


def moved_amid_a_merge(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    trees.begin(mesh.root, child)
    mesh.conn.execute("update agentmesh.agents set status = 'idle', worker_id = null")
    mesh.run(moves.begin, mesh.session, "other")


def moved_away(mesh: Mesh) -> None:
    mesh.conn.execute(
        "insert into agentmesh.moves (session_id, destination, departed_at) values (%s, 'other', now())",
        [gone := uuid4()],
    )
    mesh.run(sessions.end_session, SessionId(gone))


def called_off(mesh: Mesh) -> None:
    move = mesh.run(moves.begin, mesh.session, "other")
    assert mesh.run(moves.call_off, move) == "called off"
    mesh.run(moves.depart, move, {})


def far_numbers(mesh: Mesh) -> None:
    mesh.send(None, mesh.root)
    move = mesh.one("select gen_random_uuid()")
    mesh.conn.execute("select agentmesh.arrive(%s, gen_random_uuid(), 'other')", [move])
    mesh.conn.execute(
        "insert into agentmesh.arrival_rows select %s, 'mail', n, replace(m::text, '(' || m.id || ',', '(' || n || ',')"
        " from agentmesh.mail m, unnest(array[1, 9000000000000000000]) n",
        [move],
    )
    mesh.conn.execute("select agentmesh.number_arrival(%s, 'mail')", [move])


def changed(mesh: Mesh) -> None:
    mesh.run(moves.depart, mesh.run(moves.begin, mesh.session, "other"), {})


def mailbox_full(mesh: Mesh) -> None:
    limit(mesh, max_unread=1)
    mesh.send(None, mesh.root)
    mesh.send(None, mesh.root)


def todo(mesh: Mesh, after: Sequence[int] = ()) -> int:
    return mesh.run(todos.add_todo, mesh.session, None, "x", after)


def too_many_todos(mesh: Mesh) -> None:
    mesh.conn.execute(
        "insert into agentmesh.todos (session_id, content) select %s, 'x' from generate_series(1, 500)", [mesh.session]
    )
    todo(mesh)


def todo_of_another(mesh: Mesh) -> None:
    mesh.run(todos.claim_todo, mesh.session, mesh.root, one := todo(mesh))
    mesh.run(todos.claim_todo, mesh.session, mesh.fork(mesh.root, "late"), one)


def todo_done(mesh: Mesh) -> None:
    mesh.run(todos.finish_todo, mesh.session, None, one := todo(mesh))
    mesh.run(todos.claim_todo, mesh.session, mesh.root, one)


def todo_released_when_done(mesh: Mesh) -> None:
    mesh.run(todos.finish_todo, mesh.session, None, one := todo(mesh))
    mesh.run(todos.release_todo, mesh.session, None, one)


def too_many_processes(mesh: Mesh) -> None:
    lease = mesh.begin(mesh.root)
    for ordinal in range(9):
        mesh.run(processes.start, lease.call(1, ordinal), "x", None)


def too_many_processes_of_the_session(mesh: Mesh) -> None:
    mesh.conn.execute(
        "insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command)"
        " select %s, n, %s, 9, n, 1, 'x' from generate_series(1, 32) n",
        [mesh.session, mesh.fork(mesh.root, "busy")],
    )
    too_many_processes(mesh)


def too_many_timers(mesh: Mesh) -> None:
    for _ in range(101):
        mesh.run(timers.send_later, None, mesh.root, "x", When(after=600))


def key_reused(mesh: Mesh) -> None:
    mesh.send(None, mesh.root, "one", key="k")
    mesh.send(None, mesh.root, "two", key="k")


def mail_read(mesh: Mesh) -> None:
    mail = mesh.send(None, mesh.root)
    mesh.begin(mesh.root)
    mesh.conn.execute("select agentmesh.take_back(%s)", [mail])


def taken_back_twice(mesh: Mesh) -> None:
    mail = mesh.send(None, mesh.root)
    for _ in range(2):
        mesh.conn.execute("select agentmesh.take_back(%s)", [mail])


def external_renamed(mesh: Mesh) -> None:
    mesh.run(agents.rename, mesh.run(external.guest, mesh.session, "guest"), "x")


def depth(mesh: Mesh) -> None:
    limit(mesh, max_depth=0)
    mesh.fork(mesh.root, "a")


def children_one_idle(mesh: Mesh) -> None:
    limit(mesh, max_children=1)
    mesh.fork(mesh.root, "a")
    mesh.fork(mesh.root, "b")


def children_all_busy(mesh: Mesh) -> None:
    limit(mesh, max_children=1)
    mesh.fork(mesh.root, "a", "work")
    mesh.fork(mesh.root, "b")


def too_many_agents(mesh: Mesh) -> None:
    limit(mesh, max_agents=1)
    mesh.fork(mesh.root, "a", "work")
    mesh.fork(mesh.root, "b")


def too_many_living(mesh: Mesh) -> None:
    limit(mesh, max_living=1)
    mesh.fork(mesh.root, "a")


def too_many_spawns(mesh: Mesh) -> None:
    mesh.run(limits.set_limits, mesh.session, {"max_spawns": 0})
    mesh.fork(mesh.root, "a")


def tokens_spent(mesh: Mesh) -> None:
    limit(mesh, max_tokens=1)
    mesh.conn.execute("insert into agentmesh.session_usage (session_id, tokens) values (%s, 1)", [mesh.session])
    mesh.fork(mesh.root, "a")


def money_spent(mesh: Mesh) -> None:
    limit(mesh, max_cost_usd=1)
    mesh.conn.execute("insert into agentmesh.session_usage (session_id, cost_usd) values (%s, 2)", [mesh.session])
    mesh.fork(mesh.root, "a")


def no_money(mesh: Mesh) -> None:
    limit(mesh, max_cost_usd=0)
    mesh.fork(mesh.root, "a")


def agents_own_spent(mesh: Mesh) -> None:
    mesh.run(lambda conn: conn.execute("select agentmesh.set_budget(%s, 'tokens', 1, %s)", [mesh.session, mesh.root]))
    mesh.conn.execute("update agentmesh.agents set output_tokens = 1 where id = %s", [mesh.root])
    mesh.fork(mesh.root, "a")


def not_descendant(mesh: Mesh) -> None:
    mesh.kill(mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b"))


def halting(mesh: Mesh, may: bool, report: bool) -> None:
    shape = Shape(schema={"type": "object"}, definition={"name": "guard", "halt": may})
    child = mesh.run(agents.fork, mesh.root, "guard", "x", shape=shape, report=report)
    call = mesh.call(child, "report")[0]
    if not report:
        mesh.conn.execute("update agentmesh.agents set owes_report = false where id = %s", [child])
    mesh.run(steps.halt, call, {})


def wait_busy(mesh: Mesh) -> None:
    for call in mesh.call(mesh.root, "wait", "wait"):
        mesh.wait(mesh.root, lease=call)


def wait_for_oneself(mesh: Mesh) -> None:
    mesh.wait(mesh.root, mesh.root)


def wait_circle(mesh: Mesh) -> None:
    a = mesh.fork(mesh.root, "a", "work")
    mesh.wait(mesh.root, a)
    mesh.wait(a, mesh.root)


def busy(mesh: Mesh) -> None:
    mesh.begin(mesh.root)
    mesh.person_waits(mesh.root)


def wait_of_a_worker(mesh: Mesh) -> None:
    mesh.wait(mesh.root)
    mesh.run(waits.wait_take, mesh.root, WaitOutcome.TIMEOUT)


def alive(mesh: Mesh) -> None:
    mesh.conn.execute("select agentmesh.reap(%s, %s)", [mesh.session, mesh.root])


def no_rights(mesh: Mesh) -> None:
    mesh.conn.execute("set session authorization agentmesh_reader")
    mailbox.send(mesh.conn, None, mesh.root, "x")


def unreachable(mesh: Mesh) -> None:
    url = "postgresql://127.0.0.1:1/nowhere"
    with translated(describe(url)):
        connect(url, role="test")


def not_let_in(mesh: Mesh) -> None:
    with translated(describe("postgresql://nobody@here/mesh")):
        connect(make_conninfo(mesh.conn.info.dsn, user="nobody"), role="test")


def full(mesh: Mesh) -> None:
    mesh.conn.execute("create role narrow login connection limit 0")
    try:
        with translated(describe("postgresql://narrow@here/mesh")):
            connect(make_conninfo(mesh.conn.info.dsn, user="narrow"), role="test")
    finally:
        mesh.conn.execute("drop role narrow")


def schema_behind(mesh: Mesh) -> None:
    mesh.conn.execute("drop schema agentmesh cascade")
    mesh.conn.execute("create table public.somebody_elses ()")
    schema.ensure(mesh.url, automatic=False)


def schema_ahead(mesh: Mesh) -> None:
    mesh.conn.execute("update agentmesh.alembic_version set version_num = '9999'")
    schema.ensure(mesh.url, automatic=True)


def schema_differs(mesh: Mesh) -> None:
    mesh.conn.execute("drop view agentmesh.v_stuck")
    schema.check(mesh.conn, describe(mesh.url))


def formed(mesh: Mesh, prompt: str | None = "x", **shape: Any) -> None:
    mesh.run(agents.fork, mesh.root, "x", prompt, shape=Shape(**shape))


def schema_of_no_release(mesh: Mesh) -> None:
    mesh.conn.execute("update agentmesh.alembic_version set version_num = '0000'")
    schema.upgrade(mesh.url)


def sql(query: str) -> Callable[[Mesh], Any]:
    return lambda mesh: mesh.run(lambda conn: conn.execute(query.format(root=mesh.root, session=mesh.session)))


def answers(kind: str, words: str) -> Callable[[Mesh], Any]:
    def scene(mesh: Mesh) -> None:
        request = mesh.ask(mesh.root, kind)
        mesh.run(lambda conn: conn.execute("select agentmesh.answer(%s, %s)", [request, words]))

    return scene


def answered(mesh: Mesh) -> None:
    request = mesh.ask(mesh.root)
    for _ in range(2):
        mesh.run(requests.answer, request, {"decision": "once"}, "somebody")


def cancelled(mesh: Mesh) -> None:
    child = mesh.fork(mesh.root, "child", "work")
    request = mesh.ask(child)
    mesh.kill(child)
    mesh.run(requests.answer, request, {"decision": "once"}, "somebody")


def background_twice(mesh: Mesh) -> None:
    child = mesh.task(mesh.root, "helper", background=True)
    mesh.run(agents.background, child)


def no_task(mesh: Mesh) -> None:
    mesh.task(mesh.root, agent_id=str(mesh.fork(mesh.root, "child")))


def bare(mesh: Mesh) -> None:
    directory = mesh.run(workspaces.of_session, mesh.session)
    mesh.run(workspaces.note_repository, directory.id, None, "/tmp is in no Git repository")
    mesh.run(agents.fork, mesh.root, "child", workspace="own")


def worked(mesh: Mesh) -> tuple[Trees, Any]:
    trees = Trees(mesh)
    child = trees.own(mesh.root, "child")
    trees.work(child, "a.txt")
    return trees, child


def newer_snapshot(mesh: Mesh) -> None:
    trees = Trees(mesh)
    mesh.run(snapshots.record, trees.directory, "outside", snapshots.entry(trees.tree(), trees.tree(), "refs/x"))


def removed_files(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    seen = trees.entry(child, "a.txt")
    mesh.kill(child)
    mesh.run(workspaces.removing, trees.of(child).id)
    mesh.run(snapshots.record, trees.of(child).id, "outside", seen)


def merge_of_older_trees(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    plan = trees.plan(mesh.root, child)
    trees.work(child, "b.txt")
    mesh.run(merges.begin, plan)


def merge_while_another_steps(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    begun = trees.begin(mesh.root, child)
    trees.work(mesh.root, "b.txt")
    mesh.run(merges.end, begun.id)


def second_merge(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    trees.begin(mesh.root, child)
    trees.begin(mesh.root, child)


def merge_ended(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    mesh.run(merges.end, mesh.run(merges.refused, trees.plan(mesh.root, child), "conflicts").id)


def merge_done(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    mesh.run(merges.refused, trees.merge(mesh.root, child).id, "conflicts")


def merge_of_the_same_files(mesh: Mesh) -> None:
    mesh.run(merges.sides, mesh.root, mesh.fork(mesh.root, "child"))


def merge_of_siblings(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    mesh.run(merges.sides, trees.own(mesh.root, "other"), child)


def merge_of_nothing(mesh: Mesh) -> None:
    Trees(mesh)
    mesh.run(merges.sides, mesh.root, mesh.run(agents.fork, mesh.root, "child", workspace="own"))


def merge_into_nothing(mesh: Mesh) -> None:
    Trees(mesh)
    mesh.run(merges.sides, mesh.run(agents.fork, mesh.root, "child", workspace="own"), mesh.root)


def freed_files(mesh: Mesh) -> None:
    Trees(mesh)
    mesh.conn.execute("update agentmesh.snapshots set freed_at = now()")
    mesh.run(travel.fork_at, mesh.root, "child", 0, workspace="own")


def used_workspace(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    mesh.run(workspaces.removing, trees.of(child).id)


def workspace_of_a_merge(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    trees.begin(mesh.root, child)
    mesh.kill(child)
    mesh.run(workspaces.removing, trees.of(child).id)


def unannounced_removal(mesh: Mesh) -> None:
    trees, child = worked(mesh)
    mesh.kill(child)
    mesh.run(workspaces.removed, trees.of(child).id)


SCENES: dict[str, list[Callable[[Mesh], Any]]] = {
    "Fenced": [fenced, declared_dead],
    "CallClosed": [call_closed],
    "UrgentMailFirst": [urgent_mail_first],
    "WrongIsolation": [wrong_isolation],
    "BadArgument": [
        lambda mesh: mesh.send(None, mesh.root, "x", key=""),
        lambda mesh: mesh.run(timers.send_later, None, mesh.root, "x", When(every=1)),
        lambda mesh: mesh.run(timers.send_later, None, mesh.root, "x", When()),
        lambda mesh: mesh.run(timers.send_later, None, mesh.root, "x", When(every=60, cron="* * * * * UTC")),
        lambda mesh: formed(mesh, schema={"type": "array"}),
        lambda mesh: formed(mesh, schema={"type": "object", "title": "x" * 66000}),
        lambda mesh: formed(mesh, None, schema={"type": "object"}),
        lambda mesh: formed(mesh, check=" "),
        sql("select * from agentmesh.send_many(null, null, 'x')"),
        lambda mesh: formed(mesh, effort="max"),
        lambda mesh: mesh.run(todos.add_todo, mesh.session, None, ""),
        lambda mesh: mesh.run(todos.add_todo, mesh.session, None, "x", list(range(1, 22))),
        lambda mesh: mesh.run(todos.finish_todo, mesh.session, None, todo(mesh), "x" * 4001),
        sql("select agentmesh.claim_todo((select id from agentmesh.sessions limit 1), null)"),
    ],
    "TurnInterrupted": [turn_interrupted],
    "UnknownAgent": [lambda mesh: mesh.send(None, unknown())],
    "DeadAgent": [dead, dead_with_its_session],
    "OtherSession": [lambda mesh: mesh.send(mesh.root, stranger(mesh)), wait_for_a_stranger],
    "SelfTarget": [
        lambda mesh: mesh.send(mesh.root, mesh.root),
        lambda mesh: mesh.run(send_many.send_many, mesh.root, [mesh.root], "x"),
    ],
    "AmbiguousAgent": [ambiguous],
    "UnknownSession": [sql(f"select agentmesh.reap('{uuid4()}')")],
    "SessionEnded": [
        session_ended,
        lambda mesh: mesh.run(sessions.pin, erased(mesh), pinned=True),
        lambda mesh: mesh.run(moves.begin, erased(mesh), "other"),
    ],
    "SessionRunning": [session_running, moved_while_it_runs, moved_with_a_process, moved_amid_a_merge],
    "SessionMoved": [moved_away],
    "MoveOver": [far_numbers, called_off],
    "SessionChanged": [changed],
    "SessionThere": [lambda mesh: mesh.conn.execute("select agentmesh.arrive(%s, %s, 'x')", [uuid4(), mesh.session])],
    "EmptyMessage": [lambda mesh: mesh.send(None, mesh.root, " ")],
    "MessageTooLarge": [lambda mesh: mesh.send(None, mesh.root, "x" * 262145)],
    "MailboxFull": [mailbox_full],
    "KeyReused": [key_reused],
    "UnknownMessage": [
        lambda mesh: mesh.send(None, None, "x", reply_to=MailId(999)),
        lambda mesh: mesh.send(mesh.fork(mesh.root, "b"), mesh.root, "x", reply_to=mesh.send(None, mesh.root)),
        lambda mesh: mesh.send(mesh.root, None, "x", reply_to=mesh.send(None, mesh.root)),
    ],
    "MailRead": [mail_read, taken_back_twice, sql("select agentmesh.take_back(999)")],
    "TooManyTimers": [too_many_timers],
    "TooManyProcesses": [too_many_processes, too_many_processes_of_the_session],
    "UnknownProcess": [lambda mesh: mesh.run(processes.stop, mesh.session, 999)],
    "UnknownTimer": [lambda mesh: mesh.run(timers.cancel, mesh.session, 999)],
    "UnknownTodo": [lambda mesh: mesh.run(todos.finish_todo, mesh.session, None, 999)],
    "TooManyTodos": [too_many_todos],
    "TodoTaken": [todo_of_another, todo_done, todo_released_when_done],
    "TodoNotReady": [lambda mesh: mesh.run(todos.claim_todo, mesh.session, mesh.root, todo(mesh, [todo(mesh)]))],
    "UnknownImage": [
        lambda mesh: mesh.send(None, mesh.root, images=[{"sha256": "none", "name": "shot.png"}]),
        lambda mesh: mesh.send(None, mesh.root, images=[{"sha256": "none"}] * 21),
    ],
    "NoRecipients": [
        lambda mesh: mesh.run(send_many.send_many, None, [], "x"),
        lambda mesh: mesh.run(send_many.send_many, mesh.root, Audience.CHILDREN, "x"),
        lambda mesh: mesh.run(send_many.send_many, mesh.root, Audience.SESSION, "x"),
    ],
    "TooManyRecipients": [
        lambda mesh: mesh.run(send_many.send_many, None, [AgentId(uuid4()) for _ in range(257)], "x")
    ],
    "BadName": [lambda mesh: mesh.fork(mesh.root, "?")],
    "ReservedName": [lambda mesh: mesh.fork(mesh.root, "user")],
    "DepthLimit": [depth],
    "ChildrenLimit": [children_one_idle, children_all_busy],
    "AgentsLimit": [too_many_agents],
    "LivingLimit": [too_many_living],
    "SpawnsLimit": [too_many_spawns],
    "BudgetSpent": [tokens_spent, money_spent, agents_own_spent, no_money],
    "NameFixed": [lambda mesh: mesh.run(agents.rename, mesh.root, "x"), external_renamed],
    "NameTaken": [
        lambda mesh: mesh.run(agents.rename, mesh.fork(mesh.root, "a"), mesh.name(mesh.fork(mesh.root, "b")))
    ],
    "RootUnkillable": [lambda mesh: mesh.kill(mesh.root)],
    "NotDescendant": [not_descendant],
    "HaltRefused": [lambda mesh: halting(mesh, False, True), lambda mesh: halting(mesh, True, False)],
    "BadWait": [
        lambda mesh: mesh.person_waits(mesh.root, timeout=-1),
        sql("select agentmesh.wait_begin('{root}', '[{{\"id\": \"zz\"}}]', 1)"),
        lambda mesh: mesh.run(waits.wait_begin, mesh.root, [], 5),
        lambda mesh: mesh.run(waits.targets, mesh.session, ["x"] * 101),
        sql("select agentmesh.wait_take('{root}', 'done')"),
    ],
    "WaitBusy": [wait_busy],
    "WaitCircle": [wait_for_oneself, wait_circle],
    "AgentBusy": [busy, wait_of_a_worker, alive],
    "NoCapture": [sql("select agentmesh.capture('{root}', 'x')")],
    "NothingToRetry": [sql("select agentmesh.retry('{root}')")],
    "NoMark": [sql("select agentmesh.rewind('{root}')")],
    "NothingToCompact": [sql("select agentmesh.compact('{root}')")],
    "RequestOver": [answered, cancelled],
    "UnknownRequest": [sql(f"select agentmesh.answer('{uuid4()}', '{{{{}}}}')")],
    "BadAnswer": [
        answers("approval", "[]"),
        answers("question", '{"decision": "no"}'),
        answers("approval", '{"text": "yes"}'),
        answers("approval", '{"decision": "once", "arguments": 3}'),
        answers("approval", '{"decision": "always", "rules": []}'),
    ],
    "NotATask": [no_task],
    "NoSuchTask": [lambda mesh: mesh.run(agents.background, mesh.root), background_twice],
    "NoTree": [bare],
    "TreeMoved": [newer_snapshot, removed_files, merge_of_older_trees, merge_while_another_steps],
    "MergeBusy": [second_merge],
    "MergeOver": [merge_ended, merge_done, lambda mesh: mesh.run(merges.end, 999)],
    "NotMergeable": [
        merge_of_the_same_files,
        lambda mesh: mesh.run(merges.sides, None, mesh.root),
        merge_of_siblings,
        merge_of_nothing,
        merge_into_nothing,
    ],
    "SnapshotGone": [freed_files],
    "UnknownWorkspace": [lambda mesh: mesh.run(workspaces.removing, uuid4())],
    "WorkspaceInUse": [
        used_workspace,
        workspace_of_a_merge,
        lambda mesh: mesh.run(workspaces.removing, mesh.run(workspaces.of_session, mesh.session).id),
        unannounced_removal,
    ],
    "NothingToRestore": [lambda mesh: mesh.run(context.restore, mesh.root)],
    "DatabaseError": [no_rights],
    "DatabaseUnreachable": [unreachable, not_let_in, full],
    "SchemaBehind": [schema_behind],
    "SchemaAhead": [schema_ahead],
    "SchemaDiffers": [schema_differs, schema_of_no_release],
    "ConfigError": [lambda mesh: Database("postgresql://[bad", role="test")],
}


def fits(pattern: str, text: str) -> bool:
    """Whether the text is the document's, with something in place of each …"""
    return re.fullmatch(".+".join(map(re.escape, pattern.split("…"))), text, re.DOTALL) is not None


@pytest.mark.parametrize(("kind", "n"), [(kind, n) for kind, scenes in SCENES.items() for n in range(len(scenes))])
def test_it_is_raised_as_documented(mesh: Mesh, kind: str, n: int):
    line = [line for line in LINES if line.kind == kind][n]
    with pytest.raises(AgentmeshError) as raised, translated(describe(mesh.url)):
        SCENES[kind][n](mesh)
    error = raised.value
    assert type(error) is TREE[kind]
    assert fits(line.sentence, error.message), error.message
    assert error.hint
    assert fits(line.hint, error.hint), error.hint


def test_codes_and_exit_codes_are_those_of_the_classes():
    told = [(line.code, line.kind, line.exit_code) for line in LINES]
    assert told == [(TREE[kind].code, kind, str(TREE[kind].exit_code)) for _, kind, _ in told]


def test_every_class_is_documented_and_every_line_has_its_test():
    assert {line.kind for line in LINES} | set(OTHERS) == set(TREE)
    assert {line.kind for line in LINES} & set(OTHERS) == set()
    assert {kind: len(scenes) for kind, scenes in SCENES.items()} == {
        kind: sum(line.kind == kind for line in LINES) for kind in SCENES
    }
    assert set(SCENES) == {line.kind for line in LINES}
    for number, kind, exit_code, when in OTHERS.values():
        assert (number, exit_code) == (TREE[kind].code, str(TREE[kind].exit_code))
        assert when


def test_every_code_that_the_functions_raise_is_a_class_of_the_tree():
    raised = {each for text in code.files().values() for each in re.findall(r"refuse\('(AM\d{3})'", text)}
    assert raised
    assert raised <= {kind.code for kind in TREE.values() if issubclass(kind, errors.Refused)}


def test_no_two_classes_share_a_code():
    codes = [kind.code for kind in TREE.values() if kind not in (AgentmeshError, errors.Refused)]
    assert len(codes) == len(set(codes))
