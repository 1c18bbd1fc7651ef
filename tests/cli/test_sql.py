"""sql: one query as a role that can only read the views."""

from __future__ import annotations

import contextlib
import csv
import io
import re

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseError
from agentmesh.store import reader


def test_a_query_is_a_table_csv_or_json(am, mesh, here):
    query = "select name, status, unread from v_agents order by created_at desc limit 1"
    table = am("sql", query)
    assert [line.split() for line in table.out.splitlines()] == [["name", "status", "unread"], ["root", "idle", "0"]]
    assert table.err == "(1 row)\n"
    assert am("sql", "--json", query).data == [{"name": "root", "status": "idle", "unread": 0}]
    assert list(csv.reader(io.StringIO(am("sql", "--csv", "-", stdin=query).out)))[1] == ["root", "idle", "0"]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_what_stdout_has_no_bytes_for_is_written_as_an_escape(am, encoding):
    plain, as_json = am("sql", "select '→'", PYTHONIOENCODING=encoding), "select 'ü→' x"
    assert (plain.code, plain.err) == (0, "(1 row)\n")
    assert "\\u2192" in plain.out
    assert am("sql", "--json", as_json, PYTHONIOENCODING=encoding).data == [{"x": "ü→"}]


def test_the_hint_names_all_views(am, mesh, here, conn):
    views = conn.execute("select table_name from information_schema.views where table_name like 'v\\_%'").fetchall()
    assert set(re.findall(r"v_\w+", am("sql", "select * from agents").err)) == {name for (name,) in views}


@pytest.mark.parametrize(
    "query",
    [
        "select * from agents",
        "insert into agentmesh.mail (body) values ('x')",
        "update agentmesh.v_agents set name = 'x'",
        "select agentmesh.kill(gen_random_uuid())",
        "select agentmesh.send(null, gen_random_uuid(), 'x')",
        "set role agentmesh_reader",
        "select 1; select 2",
        "select 1; commit; delete from agentmesh.mail",
        "copy (select 1) to program 'true'",
        "selec 1",
        ";",
        "begin",
    ],
)
def test_what_is_no_single_question_to_the_views_is_refused(database_url, query):
    with pytest.raises(DatabaseError) as refused:
        reader.query(reader.reader_url(database_url), query)
    assert refused.value.hint


@pytest.mark.parametrize(
    "query",
    [
        "select lo_create(0)",
        "select lo_from_bytea(0, 'x')",
        "explain analyze select lo_create(0)",
        "do $$ begin perform lo_create(0); end $$",
        "notify heard",
        "select pg_notify('heard', '')",
        "do $$ begin notify heard; end $$",
        "create temp table mine ()",
        "select 1 into temp mine",
        "alter role current_user password 'x'",
        "alter role current_user set search_path = 'pg_temp'",
        "do $$ begin execute 'alter role current_user set work_mem = 64'; end $$",
        "begin read write",
        "start transaction read write",
        "set transaction read write",
        "set session characteristics as transaction read write",
        "commit and chain",
        "rollback",
        "select set_config('transaction_read_only', 'off', false), lo_create(0)",
        "prepare transaction 'x'",
        "listen heard",
    ],
)
def test_a_query_leaves_nothing_behind(database_url, query):
    def settings() -> list[tuple[object, ...]]:
        look = (
            "select rolpassword, (select count(*) from pg_db_role_setting s where s.setrole = a.oid) from pg_authid a"
        )
        objects = (
            "select oid::text, 0 from pg_largeobject_metadata union all select relname, 1 from pg_class order by 1, 2"
        )
        with psycopg.connect(database_url, autocommit=True) as owner:
            return [
                *owner.execute(f"{look} where rolname = 'agentmesh_reader'".encode()),
                *owner.execute(objects.encode()),
            ]

    before = settings()
    with psycopg.connect(database_url, autocommit=True) as ears:
        ears.execute("listen heard")
        with contextlib.suppress(DatabaseError):
            reader.query(reader.reader_url(database_url), query)
        ears.execute("notify heard, 'last'")
        assert [found.payload for found in ears.notifies(timeout=20, stop_after=1)] == ["last"]
    assert settings() == before


def test_a_refused_query_is_a_sentence_and_a_hint(am):
    done = am("sql", "select * from agents")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("agentmesh: PostgreSQL says: permission denied for table agents\n  The reader may read")


def test_a_query_has_a_time_limit(am):
    done = am("sql", "--timeout", "0.05", "select pg_sleep(30)")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("agentmesh: the query was not done after 0.05 s\n  `agentmesh sql --timeout`")


def test_a_reader_who_cannot_log_in_is_told_what_is_missing(am, database_url):
    done = am("sql", "select 1", AGENTMESH_READER_URL=f"{database_url}&user=agentmesh_nobody")
    assert done.code == 1
    assert "does not let the reader in" in done.err
    assert "agentmesh_reader" in done.err


def test_without_a_query_psql_opens_as_the_reader(am, mesh, here):
    done = am("sql", stdin="\\pset tuples_only\nselect current_user, count(*) from v_agents;\n")
    assert done.code == 0, done.err
    assert "agentmesh_reader |" in done.out
