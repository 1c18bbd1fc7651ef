"""The verbs rest on a new snapshot for each statement: at any other isolation level they refuse to begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from agentmesh.domain.states import WaitOutcome
from agentmesh.store import agents, mailbox, sessions, steps, waits, workers
from tests.fixtures.blocking import sqlstate
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

LEVELS = [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]


def verbs(mesh: Mesh) -> dict[str, Callable[[psycopg.Connection], Any]]:
    """Return a call of each verb that would succeed at READ COMMITTED."""
    a = mesh.fork(mesh.root, "a", "work")
    fork, wait = mesh.call(mesh.root, "fork", "wait")
    lease = mesh.begin(a)
    return {
        "fork": lambda c: agents.fork(c, a, "b", "work"),
        "fork tool": lambda c: agents.fork(c, mesh.root, "b", "work", fork),
        "send": lambda c: mailbox.send(c, None, a, "x"),
        "kill": lambda c: agents.kill(c, a),
        "interrupt": lambda c: agents.interrupt(c, a),
        "rename": lambda c: agents.rename(c, a, "b"),
        "reap": lambda c: sessions.reap(c, mesh.session),
        "wait_begin": lambda c: waits.wait_begin(c, mesh.root, None, 5, wait),
        "wait_take": lambda c: waits.wait_take(c, mesh.root, WaitOutcome.TIMEOUT, wait),
        "begin_step": lambda c: steps.begin_step(c, lease, 0),
        "finish_step": lambda c: steps.finish_step(c, lease, {"text": "x"}, [], {}),
        "start_calls": lambda c: steps.start_calls(c, fork, [0]),
        "finish_calls": lambda c: steps.finish_calls(c, fork, {0: {}}),
        "fail_turn": lambda c: steps.fail_turn(c, lease, {"error": "x"}),
        "stop_turn": lambda c: steps.stop_turn(c, lease),
        "skip_turn": lambda c: steps.skip_turn(c, lease),
        "claim": lambda c: workers.claim(c, mesh.worker, 1),
        "tick": lambda c: workers.tick(c, mesh.worker, {}),
        "give back": lambda c: workers.give_back(c, mesh.worker, {}),
        "release": lambda c: workers.release(c, mesh.worker),
        "end_session": lambda c: sessions.end_session(c, mesh.session),
        "delete_session": lambda c: sessions.delete_session(c, mesh.session),
    }


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name.lower())
def test_every_verb_refuses_it_and_names_it(mesh: Mesh, database_url: str, level: psycopg.IsolationLevel):
    with psycopg.connect(database_url) as conn:
        conn.isolation_level = level
        states = {}
        for name, verb in verbs(mesh).items():
            states[name] = sqlstate(lambda: verb(conn))  # noqa: B023
            conn.rollback()
    assert set(states.values()) == {"AM003"}, states


def test_a_session_whose_default_is_another_level_is_refused_too(mesh: Mesh):
    mesh.conn.execute("set default_transaction_isolation = 'repeatable read'")
    assert sqlstate(lambda: mailbox.send(mesh.conn, None, mesh.root, "x")) == "AM003"


def test_verbs_can_be_composed_in_one_transaction_at_read_committed(mesh: Mesh, database_url: str):
    with psycopg.connect(database_url) as conn:
        a = agents.fork(conn, mesh.root, "a")
        mailbox.send(conn, None, a, "work")
        conn.rollback()
    assert mesh.one("select count(*) from agentmesh.agents where name = 'a'") == 0
