from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from psycopg.conninfo import conninfo_to_dict

from agentmesh.domain.errors import DatabaseError
from agentmesh.store import moves, reader, schema
from agentmesh.store.listener import Listener
from agentmesh.store.opening import reach
from agentmesh.store.pool import connect
from agentmesh.store.schema import SchemaState
from agentmesh.store.tx import Database
from tests.fixtures.pooler import PROGRAM, pooled

__all__ = ["pooled"]
pytestmark = pytest.mark.skipif(not PROGRAM, reason="no pgbouncer here")


def listener_on(url):
    return Listener(url, on_notify=lambda *_: None, on_reconnect=lambda: None)


def test_a_pooler_that_loses_listen_is_refused_by_name_of_the_setting_that_helps(pooled):
    with pytest.raises(DatabaseError, match="transaction mode") as caught:
        listener_on(pooled("transaction")).start()
    assert "AGENTMESH_DIRECT_DATABASE_URL, or direct_url of its [databases.NAME]" in caught.value.hint


def test_a_pooler_in_session_mode_will_do(pooled):
    with listener_on(pooled("session")) as listener:
        listener.listen("anything")


@pytest.mark.parametrize("is_empty", [True, False])
def test_an_upgrade_leaves_no_lock_and_no_setting_in_a_poolers_session(pooled, conn, empty_database_url, is_empty):
    url, name = pooled("transaction"), conninfo_to_dict(empty_database_url if is_empty else conn.info.dsn)["dbname"]
    url = url.replace(f"/{conn.info.dbname}?", f"/{name}?")
    if not is_empty:
        conn.execute("update agentmesh.release set code = 'a checkout of yesterday'")
    schema.upgrade(url)
    with connect(url, role="test") as connection:
        assert schema.state(connection) is SchemaState.CURRENT
        assert connection.execute("show statement_timeout").fetchone() == ("0",)
        locks = "select count(*) from pg_locks join pg_database d on d.oid = database where datname = %s"
        assert connection.execute(f"{locks} and locktype = 'advisory'", [name]).fetchone() == (0,)


def test_statements_run_through_a_pooler_unprepared_and_leave_its_sessions_as_they_were(pooled):
    url = pooled("transaction")
    with Database(url, role="test") as db:
        counts = [
            db.run(lambda c: c.execute("select count(*) from pg_prepared_statements").fetchone()) for _ in range(9)
        ]
    assert counts == [(0,)] * 9
    with connect(url, role="test") as connection:
        assert connection.execute("select current_setting('lock_timeout')").fetchone() == ("0",)


@pytest.fixture
def login(conn) -> Iterator[str]:
    """A role that tests may change, and that is gone after the test."""
    name = f"pooled_{uuid.uuid4().hex[:12]}"
    conn.execute(f"create role {name} login superuser")
    yield name
    conn.execute(f"drop role {name}")


@pytest.mark.parametrize(
    ("setting", "value", "mended"),
    [
        ("DateStyle", "German, DMY", "ISO, MDY"),
        ("standard_conforming_strings", "off", "on"),
        ("array_nulls", "off", "on"),
        ("default_transaction_isolation", "serializable", "read committed"),
    ],
)
def test_a_role_whose_settings_change_what_statements_mean_is_refused_with_what_mends_it(
    pooled, login, conn, setting, value, mended
):
    conn.execute(f"alter role {login} set {setting} = '{value}'")
    with pytest.raises(DatabaseError, match=f"behind a pooler.*: {setting} = '{value}'") as caught:
        reach(pooled("transaction", user=login), role="test")
    mend = f"alter role {login} set {setting} = '{mended}'"
    assert mend in caught.value.hint
    conn.execute(mend)
    with reach(pooled("transaction", user=login), role="test") as database:
        assert database.run(lambda c: c.execute("select 1").fetchone()) == (1,)


def test_settings_that_change_no_meaning_are_the_roles_own(pooled, login, conn):
    for setting, value in (("DateStyle", "ISO, DMY"), ("TimeZone", "Europe/Berlin"), ("lock_timeout", "3s")):
        conn.execute(f"alter role {login} set {setting} = '{value}'")
    with connect(pooled("transaction", user=login), role="test") as connection:
        assert connection.execute("show lock_timeout").fetchone() == ("3s",)


def test_a_move_and_a_query_of_a_person_change_no_setting_of_a_poolers_sessions(pooled):
    url = pooled("transaction")
    shown = "select current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')"
    more = f"{shown}, current_setting('search_path')"
    with Database(url, role="test") as db:
        before = db.run(lambda c: c.execute(more).fetchone())
        with moves.patient_connection(db) as connection:
            assert connection.execute(shown).fetchone() == before[:2]
        assert reader.query(url, "select 1").rows
        assert db.run(lambda c: c.execute(more).fetchone()) == before
