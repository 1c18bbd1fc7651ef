"""Each invariant turns red, and no other, when rows are damaged by hand: a check that cannot fail is worth nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import psycopg
import pytest

from agentmesh.sql import names
from agentmesh.store import checks, context, leases, steps
from tests.fixtures.database import NewDatabase
from tests.fixtures.mesh import Mesh
from tests.fixtures.trees import Trees

_BLOCK = re.compile(r"^-- breaks: (\w+)\n(.*?)(?=^-- breaks|\Z)", re.MULTILINE | re.DOTALL)
DAMAGE = _BLOCK.findall(Path(__file__).with_name("damage.sql").read_text(encoding="utf-8"))
"""Names of invariants, each with SQL that breaks it and no other."""


def scene(mesh: Mesh) -> dict[str, Any]:
    """Make agents in every state that a check looks at; return their ids."""
    root = mesh.root
    (call,) = mesh.call(root, "bash")
    mesh.finish(call)
    at = {each: mesh.fork(root, each, "work") for each in ("idle", "ended", "waiter", "waited", "asking", "giver")}
    at["dead"], at["busy"] = mesh.fork(root, "dead", "work"), mesh.fork(root, "busy", "work")
    at["marked"] = mesh.fork(root, "marked")
    mesh.run(context.mark, at["marked"])
    mesh.send(root, at["busy"], "first")
    mesh.send(root, at["busy"], "second")
    mesh.answer(at["idle"])
    (last,) = mesh.call(at["ended"], "bash")
    mesh.finish(last)
    mesh.answer(at["ended"])
    (waits,) = mesh.call(at["waited"], "wait")
    mesh.send(at["dead"], at["waited"], "the report")
    mesh.begin(at["dead"])
    mesh.kill(at["dead"])
    mesh.wait(at["waited"], at["dead"], lease=waits)
    done, _open = mesh.call(at["busy"], "bash", "bash")
    mesh.run(context.mark, at["busy"])
    mesh.finish(done)
    mesh.wait(at["waiter"], at["busy"])
    mesh.ask(at["asking"])
    at["helper"] = mesh.task(at["giver"])
    mesh.begin(at["helper"])
    trees = Trees(mesh)
    at["own"] = trees.own(root, "own")
    trees.work(at["own"], "a.txt")
    trees.merge(root, at["own"], "a.txt")
    mesh.run(leases.set_prefixes, mesh.session, ["src"])
    mesh.run(leases.take, mesh.lease(root), "src/x")
    return {**at, "root_step": call.seq}


@pytest.fixture(scope="module")
def at(new_database: NewDatabase, template: str) -> Iterator[tuple[psycopg.Connection, dict[str, Any]]]:
    """A transaction that is undone after each test, in a database with the scene."""
    with new_database(template) as url:
        with psycopg.connect(url, autocommit=True) as conn:
            ids = scene(Mesh(conn))
        with psycopg.connect(url) as conn:
            yield conn, ids


@pytest.fixture
def damaged(at):
    conn, ids = at
    # Not replica mode alone: it lets foreign keys sleep, and constraints hold on.
    conn.execute("set local session_replication_role = replica")
    conn.execute("set local search_path = agentmesh")
    yield lambda damage: conn.execute(Template(damage).substitute(ids))
    conn.rollback()


def red(conn: psycopg.Connection) -> dict[str, list[str]]:
    return {
        one.name: [f"{each.name}: {each.detail}" for each in one.breaches]
        for one in checks.examine(conn)
        if one.breaches
    }


def test_an_undamaged_database_breaks_nothing(at):
    conn, _ids = at
    assert red(conn) == {}
    conn.rollback()


@pytest.mark.parametrize(("name", "damage"), DAMAGE)
def test_a_damage_turns_its_invariant_red_and_no_other(at, damaged, name, damage):
    damaged(damage)
    found = red(at[0])
    assert list(found) == [name], found


def test_every_invariant_is_looked_at_and_has_a_damage_that_it_finds():
    assert list(checks.INVARIANTS) == [name for name in names() if name.startswith("checks.")]
    assert {f"checks.{name}" for name, _ in DAMAGE} == set(checks.INVARIANTS)


def test_one_session_can_be_looked_at_alone(mesh: Mesh):
    other = mesh.new_session()
    mesh.conn.execute("update agentmesh.agents set interrupt_turn = 9 where id = %s", [other])
    mesh.run(steps.begin_step, mesh.begin(mesh.root), 0)
    whole, here = checks.look(mesh.conn), checks.look(mesh.conn, mesh.session)
    assert [each.agent_id for one in whole for each in one.breaches] == [other]
    assert [one.breaches for one in here if one.breaches] == []
    assert all(one.meaning.endswith(".") for one in whole)


def test_all_is_read_in_one_snapshot(mesh: Mesh, monkeypatch):
    """A session that is damaged while the checks run is as it was when they began."""
    with psycopg.connect(mesh.url, autocommit=True) as other, mesh.conn.transaction():
        mesh.conn.execute("set transaction isolation level repeatable read, read only")
        first = checks.examine(mesh.conn)
        other.execute("update agentmesh.agents set interrupt_turn = 9")
        assert checks.examine(mesh.conn) == first
    assert [one.name for one in checks.look(mesh.conn) if one.breaches] == ["turns_add_up"]
