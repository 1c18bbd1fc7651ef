from __future__ import annotations

import os

import pytest

from agentmesh.domain.errors import ConfigError
from agentmesh.store.pool import connect, connection_string, describe, is_alive, open_pool, shares_its_session


def settings_of(connection, *names):
    return tuple(connection.execute("select current_setting(%s)", [name]).fetchone()[0] for name in names)


def test_a_connection_carries_our_name_and_our_limits(database_url):
    with connect(database_url, role="test") as connection:
        assert connection.autocommit
        assert settings_of(connection, "application_name") == (f"agentmesh/test/{os.getpid()}",)
        limits = settings_of(connection, "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        assert limits == ("5s", "15s", "5s")


def test_pooled_connections_carry_them_too(database_url):
    with open_pool(database_url, role="test", size=1) as pool, pool.connection() as connection:
        assert settings_of(connection, "lock_timeout", "client_encoding") == ("5s", "UTF8")
        assert connection.autocommit
        assert connection.prepare_threshold is not None


def test_the_url_overrides_the_defaults_but_not_our_name():
    text = connection_string("postgresql://h/d?connect_timeout=60&application_name=x", role="test")
    assert "connect_timeout=60" in text
    assert f"application_name=agentmesh/test/{os.getpid()}" in text


def test_isolation_is_read_committed_whatever_the_role_says(admin, database_url, conn):
    conn.execute(f'alter database "{conn.info.dbname}" set default_transaction_isolation to serializable')
    with connect(database_url, role="test") as connection:
        assert settings_of(connection, "transaction_isolation") == ("read committed",)


def test_no_statement_is_compiled_whatever_the_database_says(database_url, conn):
    conn.execute(f'alter database "{conn.info.dbname}" set jit to on')
    with connect(database_url, role="test") as connection:
        assert settings_of(connection, "jit") == ("off",)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://me:secret@db.example:6543/mesh", "mesh at db.example:6543"),
        ("host=/run/pg dbname=mesh password=secret", "mesh at /run/pg"),
        ("postgresql://", "at localhost"),
    ],
)
def test_a_database_is_described_without_its_password(url, name):
    assert describe(url) == name


def test_an_unreadable_url_is_refused_without_repeating_it():
    with pytest.raises(ConfigError) as caught:
        describe("postgre://me:secret@db/mesh")
    assert "secret" not in str(caught.value) + caught.value.hint
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["postgresql://ann:p@ss/w:rd@db:5433/mesh", "postgres://ann:se@cret@db/mesh?a=b"])
def test_no_part_of_a_password_with_an_at_sign_is_taken_for_a_host_or_a_name(url):
    with pytest.raises(ConfigError, match="more than one @") as refused:
        describe(url)
    assert "%40" in str(refused.value.hint)


def test_a_terminated_connection_is_seen_as_dead_without_a_statement(database_url, conn):
    with connect(database_url, role="test") as victim:
        assert is_alive(victim)
        conn.execute("select pg_terminate_backend(%s, 5000)", [victim.info.backend_pid])
        assert not is_alive(victim)


def test_a_living_connection_with_something_to_say_is_not_dead(database_url, conn):
    with connect(database_url, role="test") as listening:
        listening.execute("listen told")
        conn.execute("notify told")
        assert is_alive(listening)


def test_a_direct_connection_keeps_its_session(database_url):
    with connect(database_url, role="test") as connection:
        assert not shares_its_session(connection, database_url, role="test")
