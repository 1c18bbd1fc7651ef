"""A statement that runs often, and so is prepared, gives the same value or the same error as before."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseUnreachable, Refused
from agentmesh.store import mailbox
from agentmesh.store.call import scalar
from agentmesh.store.pool import PREPARE_AFTER, connect

OFTEN = range(PREPARE_AFTER + 3)
SAME = (
    "select jsonb_build_object('id', %(id)s::uuid, 'n', %(n)s::bigint, 'text', %(text)s::text, 'none', %(none)s::int,"
    " 'again', %(n)s::bigint)"
)
ID = UUID("00000000-0000-4000-8000-00000000000a")


@pytest.fixture
def own(database_url):
    with connect(database_url, role="test") as connection:
        yield connection


def names(connection):
    rows = connection.execute("select name from pg_prepared_statements where name like '_pg3%'", prepare=False)
    return [name for (name,) in rows.fetchall()]


@pytest.mark.parametrize("text", ["", "plain", "ü \U0001f600 \\ ' % %(n)s $1", "x" * 100_000])
@pytest.mark.parametrize("n", [0, -1, 2**15, 2**31, 2**63 - 1])
def test_values_come_back_as_they_were_whatever_runs_the_statement(own, text, n):
    values = {"id": ID, "n": n, "text": text, "none": None}
    found = [scalar(own, SAME, values, dict) for _ in OFTEN]
    assert found == [{"id": str(ID), "n": n, "text": text, "none": None, "again": n}] * len(OFTEN)
    assert len(names(own)) == 1


def test_a_value_of_another_kind_is_refused(own):
    for _ in OFTEN:
        with pytest.raises(TypeError, match="expected int, got None"):
            scalar(own, "select null::int where %(n)s::int = 1", {"n": 1}, int)


def test_a_statement_is_prepared_when_it_has_been_run_some_times(own):
    for n in OFTEN:
        assert bool(names(own)) == (n > PREPARE_AFTER)
        scalar(own, "select %(n)s::int", {"n": n}, int)
    scalar(own, "select %(n)s::int + 1", {"n": 1}, int)
    assert len(names(own)) == 1


def test_nothing_is_prepared_where_others_use_the_servers_process_too(own):
    own.prepare_threshold = None
    assert [scalar(own, "select %(n)s::int", {"n": n}, int) for n in OFTEN] == list(OFTEN)
    assert names(own) == []


def test_text_that_postgresql_cannot_hold_is_refused_and_never_cut(own):
    for _ in OFTEN:
        with pytest.raises(psycopg.DataError, match="NUL"):
            scalar(own, "select %(text)s::text", {"text": "a\0b"}, str)
        assert scalar(own, "select %(text)s::text", {"text": "a"}, str) == "a"


def test_errors_are_the_same_and_the_connection_goes_on(own):
    query = "select 1 / %(n)s::int"
    for _ in OFTEN:
        with pytest.raises(psycopg.errors.DivisionByZero) as caught:
            scalar(own, query, {"n": 0}, int)
        assert caught.value.diag.message_primary == "division by zero"
        assert scalar(own, query, {"n": 1}, int) == 1
    with pytest.raises(psycopg.errors.UndefinedFunction):
        scalar(own, "select no_such_function(%(n)s::int)", {"n": 1}, int)


def test_a_refusal_keeps_its_words_and_its_hint(db):
    said = set()
    for _ in OFTEN:
        with pytest.raises(Refused) as caught:
            db.run(mailbox.send, None, ID, "to nobody")
        said.add((type(caught.value), caught.value.message, caught.value.hint))
    assert len(said) == 1


def test_a_function_that_was_replaced_meanwhile_is_the_new_one(own):
    for n in OFTEN:
        own.execute(f"create or replace function ours(x int) returns int language sql as 'select x + {n}'")
        assert scalar(own, "select ours(%(x)s)", {"x": 1}, int) == n + 1


def test_a_session_that_ends_under_it_is_a_connection_lost(db):
    query = "select count(*) from (select pg_terminate_backend(pg_backend_pid()) where %(end)s::int = 1) as ended(yes)"
    assert {db.run(scalar, query, {"end": 0}, int) for _ in OFTEN} == {0}
    with pytest.raises(DatabaseUnreachable, match="Whether the last change was made is unknown"):
        db.run(scalar, query, {"end": 1}, int)
    assert db.run(scalar, query, {"end": 0}, int) == 0


def test_a_session_that_ends_in_its_commit_is_a_connection_lost(db, conn):
    """The row has been sent by then, and is worth nothing: it was not committed."""
    conn.execute("create table public.shaky (n int)")
    conn.execute("""
        create function end_session() returns trigger language plpgsql as $$
        begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$
    """)
    conn.execute("""
        create constraint trigger ends after insert on public.shaky deferrable initially deferred
        for each row when (new.n = 1) execute function end_session()
    """)
    query = "insert into public.shaky values (%(n)s::int) returning n"
    assert {db.run(scalar, query, {"n": 0}, int) for _ in OFTEN} == {0}
    with pytest.raises(DatabaseUnreachable, match="Whether the last change was made is unknown"):
        db.run(scalar, query, {"n": 1}, int)
    assert conn.execute("select count(*) from public.shaky where n = 1").fetchone() == (0,)
    assert db.run(scalar, query, {"n": 0}, int) == 0


def test_what_the_commit_refuses_is_an_error_of_the_statement(own):
    own.execute("create table public.single (n int unique deferrable initially deferred)")
    query = "insert into public.single values (%(n)s::int) returning n"
    assert [scalar(own, query, {"n": n}, int) for n in OFTEN] == list(OFTEN)
    with pytest.raises(psycopg.errors.UniqueViolation):
        scalar(own, query, {"n": 0}, int)
    assert scalar(own, query, {"n": -1}, int) == -1
