"""``agentmesh sessions move`` by real processes: whole or not at all, wherever the mover is killed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from agentmesh.domain.ids import SessionId
from agentmesh.store import moves
from tests.cli.conftest import CommandLine
from tests.fixtures.engine import until
from tests.fixtures.full_session import full_session
from tests.fixtures.proxy import Proxy


class Two(NamedTuple):
    """Two databases, and a session in the first of them."""

    a: psycopg.Connection
    b: psycopg.Connection
    session: SessionId
    rows: int

    def lives_in(self) -> list[str]:
        query = "select count(*) from agentmesh.sessions where id = %s"
        return [
            name
            for name, conn in (("a", self.a), ("b", self.b))
            if (conn.execute(query, [self.session]).fetchone() or [0])[0]
        ]

    def is_whole(self) -> bool:
        [name] = self.lives_in()
        return rows_of(getattr(self, name), self.session) == self.rows

    def nothing_is_left(self) -> bool:
        return not any(moves.arrivals(conn) or moves.unfinished(conn) for conn in (self.a, self.b))


def rows_of(conn: psycopg.Connection, session: SessionId) -> int:
    query = "select count(*) from agentmesh.moved_rows() m, agentmesh.session_rows(%s, m.relation)"
    return int((conn.execute(query, [session]).fetchone() or [0])[0])


@pytest.fixture
def two(new_database: Any, template: str) -> Iterator[Two]:
    with ExitStack() as stack:
        urls = [stack.enter_context(new_database(template)) for _ in range(2)]
        a, b = (stack.enter_context(psycopg.connect(url, autocommit=True)) for url in urls)
        full_session(b)
        session = full_session(a)
        yield Two(a, b, session, rows_of(a, session))


@pytest.fixture
def am(tmp_path: Path, two: Two) -> CommandLine:
    made = CommandLine(tmp_path / "work", AGENTMESH_DATA_DIR=str(tmp_path / "data"))
    urls = {"a": two.a, "b": two.b}
    made.configure("".join(f"[databases.{name}]\nurl = '{conn.info.dsn}'\n" for name, conn in urls.items()))
    return made


@contextmanager
def locked(conn: psycopg.Connection, table: str) -> Iterator[None]:
    """Hold a lock that stops all who read or write a table."""
    with psycopg.connect(conn.info.dsn) as holder:
        holder.execute(SQL("lock table agentmesh.{} in access exclusive mode").format(Identifier(table)))
        yield
        holder.rollback()


def is_stopped(conn: psycopg.Connection, table: str) -> bool:
    """Whether a mover waits for the lock."""
    query = """
        select from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and l.relation = %s::regclass and a.application_name like 'agentmesh/%%'
          and a.datname = current_database()
    """
    return conn.execute(query, [f"agentmesh.{table}"]).rowcount > 0


def has_come(mover: subprocess.Popen[bytes], conn: psycopg.Connection, table: str) -> bool:
    """Whether the mover waits for the lock, or has ended without."""
    return is_stopped(conn, table) or mover.poll() is not None


WHERE: dict[str, tuple[tuple[str, str], ...]] = {
    "before the source knows": (("a", "moves"),),
    "before the destination knows": (("b", "arrivals"),),
    "before the first row": (("b", "arrival_rows"),),
    "amid the rows": (("a", "images"),),
    "in the rehearsal": (("b", "todos"),),
    "before it departs": (("a", "slots"),),
    "before it is unpacked": (("a", "slots"), ("b", "todos")),
    "before the source knows of the end": (("a", "slots"), ("b", "todos"), ("a", "moves")),
}
"""The tables at which the mover is stopped, one after the other; at the last one it is killed."""


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("server_goes_on", [True, False], ids=["its statement ends", "its statement is undone"])
def test_a_mover_is_killed_and_the_session_is_whole_in_one_place(
    am: CommandLine, two: Two, where: str, server_goes_on: bool
):
    stops = [(getattr(two, name), table) for name, table in WHERE[where]]
    with ExitStack() as held, am.start("sessions", "move", str(two.session), "b") as mover:
        release = ExitStack().close
        for conn, table in stops:
            step = ExitStack()
            step.enter_context(locked(conn, table))
            release()
            release = step.close
            held.callback(step.close)
            until(partial(has_come, mover, conn, table), where)
            assert mover.poll() is None, mover.communicate()
        mover.send_signal(signal.SIGKILL)
        mover.wait()
        if not server_goes_on:
            for conn in (two.a, two.b):
                conn.execute(
                    "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                    " where datname = current_database() and application_name like 'agentmesh/%'"
                )
        release()
    done = am("sessions", "move", "--resume")
    assert done.code == 0, done.err
    assert two.is_whole()
    assert two.nothing_is_left()
    again = am("sessions", "move", "--resume")
    assert (again.code, again.err) == (0, "No move was cut short.\n")
    if two.lives_in() == ["a"]:  # once more, to the end
        assert am("sessions", "move", str(two.session)[:8], "b").code == 0
    assert two.lives_in() == ["b"]
    assert two.is_whole()
    assert am("log", "root", "--session", str(two.session)).code == 0


@pytest.mark.parametrize("table", ["arrival_rows", "todos"], ids=["in the copy", "in the rehearsal"])
def test_a_move_that_somebody_calls_off_says_so_and_the_session_stays(am: CommandLine, two: Two, table: str):
    with am.start("sessions", "move", str(two.session), "b") as mover:
        with locked(two.b, table):
            until(partial(has_come, mover, two.b, table), table)
            [left] = moves.unfinished(two.a)
            assert moves.call_off(two.a, left.id) == "called off"
        _, said = mover.communicate(timeout=50)
    assert (mover.returncode, said.decode().splitlines()[0]) == (1, "agentmesh: the move was called off")
    assert two.lives_in() == ["a"]
    assert two.is_whole()
    assert two.nothing_is_left()


@pytest.mark.slow
@pytest.mark.parametrize("is_interrupted", [False, True], ids=["left alone", "interrupted"])
def test_a_destination_that_freezes_amid_a_move_does_not_hold_it_for_ever(
    am: CommandLine, two: Two, is_interrupted: bool
):
    door = Proxy(two.b.info.dsn)
    try:
        am.configure(f"[databases.a]\nurl = '{two.a.info.dsn}'\n[databases.b]\nurl = '{door.url}'\n")
        with am.start("sessions", "move", str(two.session), "b") as mover:
            with locked(two.b, "arrival_rows"):
                until(partial(has_come, mover, two.b, "arrival_rows"), "the lock")
                door.fall_silent()
            if is_interrupted:
                mover.send_signal(signal.SIGINT)
            _, said = mover.communicate(timeout=150)
        words = "the move was interrupted" if is_interrupted else "the server has not answered a statement for"
        assert (mover.returncode, words in said.decode()) == (130 if is_interrupted else 1, True), said
        assert "agentmesh sessions move --resume" in said.decode()
        door.speak()
        done = am("sessions", "move", "--resume", "--json")
        assert (done.code, [one["outcome"] for one in done.data]) in ((0, ["stayed"]), (0, []))
    finally:
        door.close()
    assert two.lives_in() == ["a"]
    assert two.is_whole()
    assert two.nothing_is_left()


def test_a_person_who_interrupts_a_move_is_told_what_became_of_it(am: CommandLine, two: Two):
    with am.start("sessions", "move", str(two.session), "b") as mover, locked(two.b, "arrival_rows"):
        until(partial(has_come, mover, two.b, "arrival_rows"), "the lock")
        mover.send_signal(signal.SIGINT)
        _, said = mover.communicate(timeout=100)
    assert mover.returncode == 130
    session = str(two.session)[:8]
    assert said.decode().splitlines() == [
        "agentmesh: the move was interrupted",
        f"  The session {session} has stayed in a.",
    ]
    assert two.is_whole()
    assert two.nothing_is_left()


def test_a_session_between_two_databases_is_told_and_its_schema_is_kept(am: CommandLine, two: Two):
    this = moves.begin(two.a, two.session, "b")
    moves.leave(two.a, two.b, this, two.session, "a")
    assert two.lives_in() == []
    lost = am("log", "root", "--session", str(two.session))
    assert (lost.code, "has left the database a for b, and is not there" in lost.err) == (1, True), lost.err
    assert "agentmesh sessions move --resume" in lost.err
    told = am("doctor").out
    assert f"session {str(two.session)[:8]} has departed for b, and nobody has told that it arrived" in told
    assert f"session {str(two.session)[:8]} lies sealed here, on its way from a" in told
    done = am("sessions", "move", "--resume", "--json")
    assert (done.code, [one["outcome"] for one in done.data]) == (0, ["arrived"])
    assert two.is_whole()


def test_who_follows_a_session_that_moves_is_told_where_it_went(am: CommandLine, two: Two):
    with am.start("log", "-f", "root", "--session", str(two.session)) as following:
        assert following.stdout is not None
        assert following.stdout.readline()
        moves.leave(two.a, two.b, moves.begin(two.a, two.session, "b"), two.session, "a")
        _, said = following.communicate(timeout=50)
    assert following.returncode == 1
    assert f"agentmesh: the session {two.session} has moved to the database b" in said.decode().splitlines()


def test_what_cannot_be_moved_is_refused_and_nothing_changes(am: CommandLine, two: Two):
    session = str(two.session)
    incomplete = "Give the session and the database, or --resume alone."
    for args, code, words in (
        ((), 2, incomplete),
        ((session,), 2, incomplete),
        ((session, "b", "--resume"), 2, incomplete),
        ((session, "a"), 2, f"The session {session[:8]} is in the database a already."),
        ((session, "c"), 2, "There is no database 'c'."),
        (("ffff", "b"), 1, "there is no session 'ffff' in the databases a and b"),
    ):
        told = am("sessions", "move", *args)
        assert (told.code, told.err.splitlines()[0]) == (code, f"agentmesh: {words}")
    two.a.execute(
        "update agentmesh.agents set status = 'running' where session_id = %s and name = 'grandchild'", [session]
    )
    told = am("sessions", "move", session, "b")
    assert (told.code, "agents of the session are running: grandchild" in told.err) == (1, True), told.err
    assert two.lives_in() == ["a"]
    assert two.nothing_is_left()


def test_two_names_of_one_database_are_noticed(am: CommandLine, two: Two):
    urls = {"a": two.a, "twin": two.a, "b": two.b}
    am.configure("".join(f"[databases.{name}]\nurl = '{conn.info.dsn}'\n" for name, conn in urls.items()))
    told = am("sessions", "move", str(two.session), "twin")
    assert (told.code, told.err.splitlines()[-2]) == (
        1,
        f"agentmesh: the session {two.session} is in this database already",
    )
    assert two.is_whole()
    assert two.nothing_is_left()


def test_a_destination_that_is_away_or_read_only_changes_nothing(am: CommandLine, two: Two, tmp_path: Path):
    am.configure(
        f"[databases.a]\nurl = '{two.a.info.dsn}'\n[databases.gone]\nurl = 'postgresql:///x?host={tmp_path}'\n"
        f"[databases.b]\nurl = '{two.b.info.dsn}'\nread_only = true\n"
    )
    for name, words in {"gone": "cannot be reached", "b": "configured as read_only"}.items():
        told = am("sessions", "move", str(two.session), name)
        assert told.code != 0
        assert words in told.err
    assert two.is_whole()
    assert two.nothing_is_left()


def test_a_destination_that_goes_away_amid_a_move_leaves_the_session_where_it_was(am: CommandLine, two: Two):
    door = Proxy(two.b.info.dsn)
    try:
        am.configure(f"[databases.a]\nurl = '{two.a.info.dsn}'\n[databases.b]\nurl = '{door.url}'\n")
        with am.start("sessions", "move", str(two.session), "b") as mover, locked(two.b, "todos"):
            until(partial(has_come, mover, two.b, "todos"), "the lock")
            door.refuse()
            _, said = mover.communicate(timeout=100)
        assert mover.returncode == 1
        assert "is left unfinished" not in said.decode()
        assert "throws away what has arrived of it" in said.decode()
        assert not moves.unfinished(two.a), "the source knows that it has stayed"
        door.admit()
        assert am("sessions", "move", "--resume").code == 0
    finally:
        door.close()
    assert two.is_whole()
    assert two.nothing_is_left()


def test_a_session_that_departed_to_a_database_that_is_not_configured_is_told(am: CommandLine, two: Two):
    this = moves.begin(two.a, two.session, "b")
    moves.leave(two.a, two.b, this, two.session, "a")
    with psycopg.connect(two.a.info.dsn, autocommit=True) as other:
        full_session(other)
    am.configure(f"[databases.a]\nurl = '{two.a.info.dsn}'\n[databases.c]\nurl = '{two.a.info.dsn}'\n")
    told = am("sessions", "move", "--resume")
    assert told.code == 1
    assert f"Session {str(two.session)[:8]} is between a and b" in told.err
    assert two.lives_in() == []


def test_what_is_said_of_a_move_there_and_back(am: CommandLine, two: Two):
    session = str(two.session)
    there = am("sessions", "move", session, "b")
    assert there.code == 0
    assert (
        f"Moved session {session[:8]} from a to b: {two.rows} rows. Numbers have changed: mail by +1,000" in there.err
    )
    back = am("sessions", "move", session, "a", "--json")
    assert (back.data["source"], back.data["destination"], back.data["rows"]) == ("b", "a", two.rows)
    assert two.is_whole()
    assert am("sessions", "list", "--json").data[0]["database"] in ("a", "b")
