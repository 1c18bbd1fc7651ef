"""P35: a year of use. The calls of every day, in a database with many old sessions and in one with a single session.

The old sessions are made by the program's own ``start_session``. Their agents, read mail and rows are those that forks,
messages and answers leave, written by set-based SQL under all constraints: sending ten million messages takes hours.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import psycopg

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.store import agents, board, mailbox, search, steps, waits, workers
from agentmesh.store.call import Lease
from bench import scale_crowd
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import HOST, USER, Mesh
from bench.statements import Statement, rows_read, timed

_AGENTS: Final = 5
"""Of each session, its root among them."""
_SAMPLES: Final = 15
_WORD: Final = "needle"
"""Stands once in each session."""

_SESSIONS: Final = """
select agentmesh.start_session(s.workdir || '/' || n %% 100, s.host, s.os_user, a.model, t.system_prompt, t.tools)
from agentmesh.sessions s join agentmesh.agents a on a.id = s.root_id join agentmesh.settings t on t.id = a.settings_id,
  generate_series(1, %(sessions)s) n
where s.id = %(like)s
"""
_MAIL: Final = """
insert into agentmesh.mail (session_id, sender, recipient, body, sent_at, read_at, read_seq)
select a.session_id, null, a.id, 'do the next thing, number ' || n, a.created_at, a.created_at, (n - 1) * %(each)s + 1
from agentmesh.agents a, generate_series(1, %(mails)s) n where a.session_id = any (%(sessions)s)
"""
_ROWS: Final = """
insert into agentmesh.transcript (agent_id, seq, kind, content)
select a.id, n, 'assistant', jsonb_build_object('text',
  case when n = 1 and a.parent_id is null then %(word)s || ' ' else '' end
  || 'looked at file ' || md5(a.id::text || n) || ' and found nothing that must change in its ' || n || ' lines')
from agentmesh.agents a, generate_series(1, %(rows)s) n where a.session_id = any (%(sessions)s) order by n, a.id
"""
_AT_ONCE: Final = 8
"""Sessions that worked at the same time: their rows lie side by side, as in a database that many have used."""


@dataclass(frozen=True, slots=True)
class Used:
    """A session as all others, and an agent of it that a worker owns."""

    mesh: Mesh
    session: SessionId
    root: AgentId
    idle: AgentId
    lease: Lease


def run(bench: Bench) -> None:
    """Measure P35."""
    old = bench.size(400, 20, 20_000)
    rows, mails = bench.size(100, 10), bench.size(10, 2)
    calls: Mapping[str, str] = {
        "send": "a message to an agent",
        "wait": "a wait that finds nothing and ends at once",
        "begin_step": "the begin of a model call",
        "ps": "the list of a session's agents",
        "search": "a search in a session",
        "screen": "what a screen reads at its start",
    }
    figure = Figure(
        "P35",
        f"a year of use: {old:,} sessions, {old * _AGENTS * mails:,} mails, {old * _AGENTS * rows:,} rows",
        {
            **{f"{name} / empty": "x" for name in calls},
            **dict.fromkeys(calls, "ms"),
            **{f"{name}: rows read more": "" for name in calls},
        },
        [Target(f"{name} / empty", "<=", 1.3) for name in calls],
        repetitions=3,
        ordinary=2,
        note="Against a database with one such session. p50, the two in turn, each call rolled back: "
        + ", ".join(f"{name}, {what}" for name, what in calls.items())
        + ". Rows that PostgreSQL reads more than in the other database, whatever else the machine does.",
    )
    with ExitStack() as stack:
        one, many = (stack.enter_context(bench.place.mesh()) for _ in range(2))
        used = {"empty": _fill(one, 1, rows, mails), "old": _fill(many, old, rows, mails)}

        def repeat() -> Values:
            values: dict[str, float] = {}
            with ExitStack() as open_:
                conns = {where: open_.enter_context(psycopg.connect(each.mesh.url)) for where, each in used.items()}
                for name in calls:
                    statement = {where: _statement(name, each) for where, each in used.items()}
                    for where, conn in conns.items():  # plans are made
                        for _ in range(6):
                            timed(conn, statement[where])
                    read = {where: rows_read(conn, statement[where]) for where, conn in conns.items()}
                    took: dict[str, list[float]] = {where: [] for where in used}
                    for _ in range(_SAMPLES):
                        for where, conn in conns.items():
                            took[where].append(timed(conn, statement[where]))
                    p50 = {where: statistics.median(times) for where, times in took.items()}
                    values[name] = p50["old"]
                    values[f"{name} / empty"] = ratio(p50["old"], p50["empty"])
                    values[f"{name}: rows read more"] = read["old"] - read["empty"]
            return values

        bench.measure(repeat, figure)


def _statement(name: str, used: Used) -> Statement:
    session, idle, lease = used.session, used.idle, used.lease
    calls: dict[str, Statement] = {
        "send": lambda conn: mailbox.send(conn, None, lease.agent_id, "and this too"),
        "wait": lambda conn: waits.wait_begin(conn, idle, None, 0.0),
        "begin_step": lambda conn: steps.begin_step(conn, lease, 0),
        "ps": lambda conn: agents.page(conn, session, 1000, 1000),
        "search": lambda conn: search.search(conn, _WORD, session),
        "screen": lambda conn: (
            board.agents(conn, session, [used.root]),
            board.used(conn, session, [used.root]),
            board.newest(conn, used.root, 50),
            board.waits(conn, [used.root, idle]),
            board.pending(conn, [used.root, idle]),
            board.working(conn, session),
            board.left(conn, session),
        ),
    }
    return calls[name]


def _fill(mesh: Mesh, count: int, rows: int, mails: int) -> Used:
    """Fill a database with so many sessions; return one whose agents did the same as all others."""
    made = mesh.bare.execute(_SESSIONS, {"sessions": count, "like": mesh.session}).fetchall()
    roots = [AgentId(row[0]) for row in made]
    for n in range(0, len(roots), _AT_ONCE):
        some = roots[n : n + _AT_ONCE]
        scale_crowd.fork_idle(mesh.bare, some, _AGENTS - 1, f"helper{n}")
        inside = mesh.one("select array_agg(session_id) from agentmesh.agents where id = any (%s)", some)
        mesh.bare.execute(_ROWS, {"rows": rows, "word": _WORD, "sessions": inside})
        mesh.bare.execute(_MAIL, {"mails": mails, "each": max(rows // mails, 1), "sessions": inside})
    root = roots[-1]
    me = mesh.database.run(workers.join, workers.Identity(HOST, USER, 1, 1, ("puppet",)))
    running = mesh.fork(root, "work", "works")
    (claimed,) = mesh.database.run(workers.claim, me, 1)
    if claimed.id != running:
        raise RuntimeError("another agent was claimed")
    lease = Lease(running, me, claimed.epoch)
    mesh.database.run(steps.begin_step, lease, 0)
    mesh.settle_storage()
    idle = mesh.one("select id from agentmesh.agents where parent_id = %s and status = 'idle' limit 1", root)
    return Used(mesh, mesh.session_of(root), root, AgentId(idle), lease)
