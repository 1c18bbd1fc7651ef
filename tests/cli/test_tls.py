"""A database that takes nothing but TLS, with a certificate authority of the user's own."""

from __future__ import annotations

from queue import SimpleQueue

import pytest

from agentmesh.store import schema, status
from agentmesh.store.listener import Listener
from agentmesh.store.pool import connect
from agentmesh.store.schema import SchemaState
from agentmesh.store.tx import Database
from tests.cli.conftest import CommandLine
from tests.fixtures.tls import PASSWORD


@pytest.fixture
def url(tls_server):
    """The server's URL, fully verified; its database has the schema."""
    found = tls_server.url(ca=tls_server.ca)
    schema.ensure(found, automatic=False)
    return found


@pytest.fixture
def tls_am(tmp_path, url):
    """The command line on that database."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=url)


def test_pool_and_listener_speak_tls_with_a_verified_server(url):
    heard: SimpleQueue[str] = SimpleQueue()
    ssl = "select ssl, version from pg_stat_ssl where pid = pg_backend_pid()"
    with Database(url, role="test") as db:
        assert db.run(lambda conn: conn.execute(ssl).fetchone())[0] is True
        with Listener(url, on_notify=lambda _channel, payload: heard.put(payload), on_reconnect=lambda: None) as ears:
            ears.listen("tls")
            db.run(status.publish, [("tls", "hello")])
            assert heard.get(timeout=20) == "hello"
    with connect(url, role="test") as connection:
        assert schema.state(connection) is SchemaState.CURRENT
        unsafe = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) where client_port > 0 and not ssl"
        assert connection.execute(unsafe).fetchone() == (0,)


def test_doctor_and_the_commands_work_over_it(tls_am):
    found = {one["about"]: one for one in tls_am("doctor", "--json").data["findings"]}
    assert found["server"]["state"] == "ok"
    assert found["notifications"]["state"] == "ok"
    assert tls_am("sessions", "--json").code == 0


@pytest.mark.parametrize(
    ("login", "words", "advice"),
    [
        ("mesh:wrong", 'password authentication failed for user "mesh"', "Check the role, its password"),
        ("nobody:wrong", 'password authentication failed for user "nobody"', "Check the role, its password"),
        ("mesh", "no password supplied", "Put the role's password into the URL"),
    ],
)
def test_a_login_that_fails_is_not_taken_for_a_server_that_is_away(tls_server, tmp_path, login, words, advice):
    given, _, rest = tls_server.url(mode="require").partition("@")
    assert given.endswith("mesh")
    url = f"postgresql://{login}@{rest.partition('?')[0]}?sslmode=require"
    am = CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=url)
    for command in ("ps", "doctor"):
        done = am(command)
        assert done.code == 1
        assert words in done.out + done.err
        assert advice in done.out + done.err
        assert "AGENTMESH_DATABASE_URL" in done.out + done.err
        assert "wrong@" not in done.out + done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ca": "other_ca"}, "certificate verify failed"),
        ({"ca": "ca", "host": "127.0.0.1"}, 'does not match host name "127.0.0.1"'),
        ({"ca": "ca", "mode": "disable"}, "no pg_hba.conf entry for host"),
        ({}, "root certificate file"),
    ],
)
def test_what_is_wrong_with_it_is_one_sentence_without_the_password(tls_server, tmp_path, changes, words):
    options = {**changes, **({"ca": getattr(tls_server, changes["ca"])} if "ca" in changes else {})}
    url = tls_server.url(**options)
    am = CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=url)
    for command in ("ps", "doctor"):
        done = am(command)
        assert done.code == 1
        (line,) = [each for each in (done.out + done.err).splitlines() if words in each]
        assert "cannot be reached" in line
        assert "Traceback" not in done.err
        assert PASSWORD not in done.out + done.err
    assert "sslrootcert" in am("ps").err
