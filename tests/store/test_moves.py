"""Moves between databases: rows arrive as they were, apart from numbers, and one commit decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from agentmesh.domain.errors import (
    DatabaseError,
    MoveOver,
    SchemaDiffers,
    SessionChanged,
    SessionMoved,
    SessionRunning,
    UnknownAgent,
    UnknownSession,
)
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.timers import When
from agentmesh.store import agents, context, mailbox, moves, person, schema, sessions, timers, todos
from agentmesh.store.errors import translated
from agentmesh.store.tx import Database
from tests.fixtures.blocking import Stage
from tests.fixtures.full_session import full_session
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh

STAY = {
    "alembic_version",
    "arrival_rows",
    "arrivals",
    "capabilities",
    "code",
    "model_bills",
    "moves",
    "pauses",
    "prefixes",
    "release",
    "reservations",
    "slots",
    "workers",
}
"""Tables of a database itself, and what agents only have while they run."""


@pytest.fixture
def there(new_database: Any, template: str) -> Iterator[psycopg.Connection]:
    """The other database."""
    with new_database(template) as url, psycopg.connect(url, autocommit=True) as connection:
        yield connection


def relations(conn: psycopg.Connection) -> list[str]:
    return [row[0] for row in conn.execute("select relation from agentmesh.moved_rows() order by place")]


def rows_of(conn: psycopg.Connection, session: SessionId, **more: int) -> dict[str, list[str]]:
    """Every row that goes along, by table; ``more`` is what the numbers are to be larger by, by table that counts."""
    found: dict[str, list[str]] = {}
    for relation, numbers in conn.execute("select relation, numbers from agentmesh.moved_rows()").fetchall():
        rows = conn.execute("select * from agentmesh.session_rows(%s, %s)", [session, relation]).fetchall()
        parsed = conn.execute(
            f"select to_jsonb(r::agentmesh.{relation}) from unnest(%s::text[]) r", [[r for (r,) in rows]]
        ).fetchall()
        for (row,) in parsed:
            for column, counted in numbers.items():
                row[column] = larger(row[column], more.get(counted, 0))
            if relation == "transcript" and "mail_id" in row["content"]:
                row["content"]["mail_id"] += more.get("mail", 0)
        found[relation] = sorted(json.dumps(row, sort_keys=True) for (row,) in parsed)
    return found


def larger(value: Any, by: int) -> Any:
    return None if value is None else [one + by for one in value] if isinstance(value, list) else value + by


def move(here: psycopg.Connection, there: psycopg.Connection, session: SessionId) -> dict[str, int]:
    this = moves.begin(here, session, "there")
    left = moves.leave(here, there, this, session, "here")
    assert moves.unpack(there, this) == session
    moves.end(here, this)
    return dict(left.offsets)


@pytest.mark.parametrize("missing", ["begin_move", "session_rows", "depart"])
def test_an_error_of_the_source_names_the_source(conn: psycopg.Connection, there: psycopg.Connection, missing: str):
    session = full_session(conn)
    conn.execute(SQL("alter function agentmesh.{} rename to is_gone").format(Identifier(missing)))
    with Database(conn.info.dsn, role="test") as source, Database(there.info.dsn, role="test") as destination:
        name = f"{conn.info.dbname} at .*{missing}"
        with (
            pytest.raises(DatabaseError, match=f"^The database {name}"),
            moves.patient_connection(source) as leaving,
            moves.patient_connection(destination) as arriving,
        ):
            moves.leave(leaving, arriving, moves.begin(leaving, session, "there"), session, "here")


def test_every_table_is_moved_or_stays_with_its_database(conn: psycopg.Connection):
    tables = {row[0] for row in conn.execute("select tablename from pg_tables where schemaname = 'agentmesh'")}
    assert tables == {*relations(conn), *STAY}


def test_the_full_session_has_rows_in_every_table(conn: psycopg.Connection):
    rows = rows_of(conn, full_session(conn))
    assert [one for one, found in rows.items() if not found] == []


def test_there_and_back_every_row_is_as_it_was_but_for_its_number(conn: psycopg.Connection, there: psycopg.Connection):
    for _ in range(3):
        full_session(there)  # whose numbers are taken
    session, other = full_session(conn), full_session(conn)
    before, stays = rows_of(conn, session), rows_of(conn, other)
    out = move(conn, there, session)
    assert rows_of(there, session, **{name: -amount for name, amount in out.items()}) == before
    assert all(amount % 1000 == 0 for amount in out.values())
    assert not any(rows for name, rows in rows_of(conn, session).items() if name != "settings")
    back = move(there, conn, session)
    assert not any(rows for name, rows in rows_of(there, session).items() if name != "settings")
    grown = {name: out[name] + back[name] for name in out}
    assert rows_of(conn, session, **{name: -amount for name, amount in grown.items()}) == before
    assert rows_of(conn, other) == stays


def texts_of(conn: psycopg.Connection, session: SessionId) -> dict[str, list[str]]:
    query = """
        select m.relation, array(select r from agentmesh.session_rows(%s, m.relation) r order by r collate "C")
        from agentmesh.moved_rows() m where m.numbers = '{}' and m.relation <> 'transcript'
    """
    return dict(conn.execute(query, [session]).fetchall())


def test_rows_without_numbers_arrive_to_the_letter(conn: psycopg.Connection, there: psycopg.Connection):
    """JSON's null is not SQL's, a number keeps its digits, and a time its microseconds, wherever servers stand."""
    database = there.info.dbname
    for setting in ("timezone = 'Asia/Kathmandu'", "datestyle = 'SQL, DMY'", "bytea_output = 'escape'"):
        there.execute(f'alter database "{database}" set {setting}'.encode())
    there.execute("set timezone = 'Asia/Kathmandu'")
    there.execute("set datestyle = 'SQL, DMY'")
    there.execute("set bytea_output = 'escape'")
    session = full_session(conn)
    before = texts_of(conn, session)
    move(conn, there, session)
    assert texts_of(there, session) == before


def test_what_an_agent_has_read_names_the_new_numbers_and_foreign_results_stay(
    conn: psycopg.Connection, there: psycopg.Connection
):
    full_session(there)
    mesh = Mesh(conn)
    child = mesh.fork(mesh.root, "child")
    asked = mesh.send(None, mesh.root, "question")
    send, foreign, board = mesh.call(mesh.root, "send", "mcp__chat__post", "todo")
    answer = mesh.run(mailbox.send, mesh.root, child, "answer", lease=send)
    mesh.finish(foreign, {"message_id": asked})
    todo = mesh.run(todos.add_todo, mesh.session, mesh.root, "x", [], board)
    second = mesh.run(todos.add_todo, mesh.session, None, "y", [todo])
    reply = mesh.send(child, mesh.root, "reply", reply_to=answer)
    while mesh.unread(mesh.root):
        mesh.answer(mesh.root)
    rest(mesh)
    grown = move(conn, there, mesh.session)
    assert grown["mail"] > 0
    contents = {
        (kind, content.get("name")): content
        for kind, content in there.execute(
            "select kind, content from agentmesh.transcript where agent_id = %s order by seq", [mesh.root]
        )
    }
    assert contents["user", None]["mail_id"] == asked + grown["mail"]
    assert contents["tool_result", "send"]["result"]["message_id"] == answer + grown["mail"]
    assert contents["tool_result", "mcp__chat__post"]["result"] == {"message_id": asked}
    assert contents["tool_result", "todo"]["result"]["added"]["id"] == todo + grown["todos"]
    assert contents["mail", "child"]["mail_id"] == reply + grown["mail"]
    assert contents["mail", "child"]["reply_to"]["message_id"] == answer + grown["mail"]
    assert there.execute("select after from agentmesh.todos where id = %s", [second + grown["todos"]]).fetchone() == (
        [todo + grown["todos"]],
    )
    assert violations(conn) == []


def test_work_goes_on_at_the_destination(conn: psycopg.Connection, there: psycopg.Connection):
    """Old and new numbers never meet: what is sent there gets a number behind all that have arrived."""
    mesh, other = Mesh(conn), Mesh(there)
    child = mesh.fork(mesh.root, "child")
    mesh.send(None, child, "read later", key="k")
    rest(mesh)
    mesh.conn.execute("update agentmesh.agents set status = 'idle' where id = %s", [child])
    move(conn, there, mesh.session)
    newest = other.one("select max(id) from agentmesh.mail")
    assert other.send(mesh.root, child, "news") > newest
    assert other.send(None, child, "read later", key="k") <= newest, "its key is remembered"
    assert other.send(None, other.root, "x") > newest
    assert other.answer(child) == "idle"
    other.fork(mesh.root, "new", "work")
    assert violations(there) == []


def rest(mesh: Mesh) -> None:
    """Let the agents lie as after a turn."""
    mesh.conn.execute("update agentmesh.agents set status = 'idle', worker_id = null where status = 'running'")


CHANGES: dict[str, Callable[[Mesh], object]] = {
    "a message": lambda mesh: mesh.answer(mesh.root),
    "a fork": lambda mesh: mesh.fork(mesh.root, "late"),
    "a title": lambda mesh: mesh.run(person.rename_session, mesh.session, "other"),
    "a todo": lambda mesh: mesh.run(todos.add_todo, mesh.session, None, "x"),
    "a todo that is done": lambda mesh: mesh.conn.execute(
        "update agentmesh.todos set status = 'done', done_at = now() where session_id = %s", [mesh.session]
    ),
    "a row that is gone": lambda mesh: mesh.conn.execute("delete from agentmesh.todos"),
    "a mode": lambda mesh: mesh.run(sessions.set_mode, mesh.session, PermissionMode.PLAN),
    "a budget": lambda mesh: mesh.conn.execute("update agentmesh.sessions set max_tokens = 7"),
    "a kill": lambda mesh: mesh.kill(mesh.fork(mesh.root, "brief")),
    "an end": lambda mesh: mesh.run(sessions.end_session, mesh.session),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_after_the_copy_keeps_the_session_from_departing(
    conn: psycopg.Connection, there: psycopg.Connection, what: str
):
    mesh = Mesh(conn)
    mesh.run(todos.add_todo, mesh.session, None, "early")
    this = moves.begin(conn, mesh.session, "there")
    moves.copy(conn, there, this, mesh.session, "here")
    digests = moves.digests(there, this)
    CHANGES[what](mesh)
    before = texts_of(conn, mesh.session)
    with pytest.raises(SessionChanged):
        mesh.run(moves.depart, this, digests)
    assert texts_of(conn, mesh.session) == before
    left = moves.leave(conn, there, this, mesh.session, "here")
    assert left.rows
    assert moves.unpack(there, this) == mesh.session
    assert {name: rows for name, rows in texts_of(there, mesh.session).items() if name != "sessions"} == {
        name: rows for name, rows in before.items() if name != "sessions"
    }


def test_of_two_movers_one_wins(conn: psycopg.Connection, there: psycopg.Connection):
    session = full_session(conn)
    first, second = moves.begin(conn, session, "x"), moves.begin(conn, session, "y")
    for move_ in (first, second):
        moves.copy(conn, there, move_, session, "here")
        moves.number(there, move_)
    moves.depart(conn, second, moves.digests(there, second))
    with pytest.raises(SessionMoved), translated():
        moves.depart(conn, first, moves.digests(there, first))
    assert moves.call_off(conn, second) == "departed"
    assert moves.call_off(conn, first) == "called off"
    assert moves.discard(there, first)
    assert [moves.unpack(there, second) for _ in range(2)] == [session, session]
    assert moves.unpack(there, first) is None
    assert moves.arrivals(there) == []


def test_who_finds_the_arrival_thrown_away_is_told_that_the_move_is_over(
    conn: psycopg.Connection, there: psycopg.Connection
):
    session = full_session(conn)
    this = moves.begin(conn, session, "there")
    moves.copy(conn, there, this, session, "here")
    digests = moves.digests(there, this)
    assert moves.call_off(conn, this) == "called off"
    assert moves.discard(there, this)
    for step in (lambda: moves.number(there, this), lambda: moves.depart(conn, this, digests)):
        with pytest.raises(MoveOver), translated():
            step()
    assert moves.unpack(there, this) is None


VERBS: dict[str, Callable[[psycopg.Connection, SessionId, AgentId], object]] = {
    "send": lambda c, _s, child: mailbox.send(c, None, child, "x"),
    "send later": lambda c, _s, child: timers.send_later(c, None, child, "x", When(after=60)),
    "fork": lambda c, _s, child: agents.fork(c, child, "late", "work"),
    "kill": lambda c, _s, child: agents.kill(c, child),
    "interrupt": lambda c, _s, child: agents.interrupt(c, child),
    "rename": lambda c, _s, child: agents.rename(c, child, "other"),
    "mark": lambda c, _s, child: context.mark(c, child),
    "end": lambda c, session, _child: sessions.end_session(c, session),
    "delete": lambda c, session, _child: sessions.delete_session(c, session),
    "mode": lambda c, session, _child: sessions.set_mode(c, session, PermissionMode.PLAN),
    "title": lambda c, session, _child: person.rename_session(c, session, "other"),
    "todo": lambda c, session, _child: todos.add_todo(c, session, None, "x"),
    "pin": lambda c, session, _child: sessions.pin(c, session, pinned=True),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_comes_while_the_session_departs_says_that_it_is_gone(
    conn: psycopg.Connection, there: psycopg.Connection, stage: Stage, verb: str
):
    mesh = Mesh(conn)
    child = mesh.fork(mesh.root, "child")
    this = moves.begin(conn, mesh.session, "there")
    moves.copy(conn, there, this, mesh.session, "here")
    moves.number(there, this)
    moves.depart(stage.holder, this, moves.digests(there, this))
    late = stage.meanwhile(lambda own: VERBS[verb](own, mesh.session, child), blocks=True)
    stage.holder.commit()
    with pytest.raises((UnknownAgent, UnknownSession)), translated():
        late.result()
    assert moves.unpack(there, this) == mesh.session
    assert [*violations(conn), *violations(there)] == []


@pytest.mark.parametrize("verb", VERBS.keys() - {"interrupt"})
def test_a_verb_that_came_first_is_not_lost(
    conn: psycopg.Connection, there: psycopg.Connection, stage: Stage, verb: str
):
    mesh = Mesh(conn)
    child = mesh.fork(mesh.root, "child")
    this = moves.begin(conn, mesh.session, "there")
    moves.copy(conn, there, this, mesh.session, "here")
    digests = moves.digests(there, this)
    VERBS[verb](stage.holder, mesh.session, child)
    departing = stage.meanwhile(lambda own: moves.depart(own, this, digests), blocks=True)
    stage.holder.commit()
    with pytest.raises((SessionChanged, SessionRunning, UnknownSession)), translated():
        departing.result()
    assert violations(conn) == []


def test_tables_cannot_change_while_a_session_arrives(conn: psycopg.Connection, there: psycopg.Connection):
    session = full_session(conn)
    this = moves.begin(conn, session, "there")
    moves.copy(conn, there, this, session, "here")
    with pytest.raises(SchemaDiffers, match="are still arriving"):
        schema._require_nothing_sealed(there, "there", schema.Schema("0026", "0.1"))
    moves.discard(there, this)
    schema._require_nothing_sealed(there, "there", schema.Schema("0026", "0.1"))
