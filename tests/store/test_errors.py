from __future__ import annotations

import inspect
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from agentmesh.domain import errors
from agentmesh.store import changes, context, snapshots, timers, todos, travel
from agentmesh.store.errors import domain_error, translated

REFUSALS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.Refused)]

RAISE = """
do $$ begin raise exception using errcode = '{}', message = 'no: agent a (0000)', hint = 'do this'; end $$
"""


def raised_by(conn, statement, where="mesh at here"):
    with pytest.raises(errors.AgentmeshError) as caught, translated(where):
        conn.execute(statement)
    return caught.value


@pytest.mark.parametrize("kind", REFUSALS, ids=lambda kind: kind.__name__)
def test_a_refusal_keeps_its_class_sentence_and_hint(admin, kind):
    error = raised_by(admin, RAISE.format(kind.code))
    assert type(error) is kind
    assert (error.message, error.hint) == ("no: agent a (0000)", "do this")
    assert isinstance(error.__cause__, psycopg.Error)


def test_an_unknown_refusal_is_a_refusal_all_the_same(admin):
    assert type(raised_by(admin, RAISE.format("AM999"))) is errors.Refused


def test_escape_sequences_in_a_refusal_do_not_reach_the_terminal(admin):
    statement = r"do $$ begin raise exception using errcode = 'AM010', message = E'no agent \x1b[31mred'; end $$"
    assert raised_by(admin, statement).message == "no agent [31mred"


@pytest.mark.parametrize("statement", ["select from agentmesh.no_such_table", "select no_such_schema.f()"])
def test_a_missing_table_or_schema_means_that_the_schema_is_behind(conn, statement):
    error = raised_by(conn, statement)
    assert type(error) is errors.SchemaBehind
    assert "agentmesh db upgrade" in error.hint


def test_any_other_error_names_the_database_and_what_postgresql_says(conn):
    error = raised_by(conn, "select 1 / 0")
    assert type(error) is errors.DatabaseError
    assert error.message == "The database mesh at here says: division by zero"


def test_a_time_limit_says_that_nothing_was_changed(conn):
    conn.execute("set statement_timeout = '10ms'")
    assert "nothing was changed" in raised_by(conn, "select pg_sleep(10)").hint


def test_a_refused_connection_is_unreachable_and_names_the_host_but_not_the_password():
    with pytest.raises(errors.DatabaseUnreachable) as caught, translated("mesh at 127.0.0.1:1"):
        psycopg.connect("host=127.0.0.1 port=1 dbname=mesh user=me password=secret")
    assert caught.value.message.startswith("The database mesh at 127.0.0.1:1 cannot be reached: ")
    assert "secret" not in str(caught.value) + caught.value.hint


REFUSED = "failed: Connection refused"


@pytest.mark.parametrize(
    ("url", "where"),
    [
        (
            "postgresql:///mesh?host=/no/folder",
            'on socket "/no/folder/.s.PGSQL.5432" failed: No such file or directory',
        ),
        ("postgresql://127.0.0.1:1/mesh", f'at "127.0.0.1", port 1 {REFUSED}'),
        (
            "postgresql://127.0.0.1:1,127.0.0.1:2/mesh",
            f'at "127.0.0.1", port 1 {REFUSED}; connection to server at "127.0.0.1", port 2 {REFUSED}',
        ),
    ],
)
def test_a_refused_connection_is_one_sentence(url: str, where: str):
    with pytest.raises(errors.DatabaseUnreachable) as caught, translated("mesh"):
        psycopg.connect(url)
    assert caught.value.message == f"The database mesh cannot be reached: connection to server {where}"


def test_a_database_that_does_not_exist_is_unreachable(server_url):
    with pytest.raises(errors.DatabaseUnreachable, match="does not exist") as caught, translated("mesh"):
        psycopg.connect(server_url, dbname="no_such_database")
    assert caught.value.message.startswith("The database mesh cannot be opened: ")
    assert caught.value.hint.startswith("Check the role, its password and the database's name in the URL")


@pytest.mark.parametrize("limited", ["role", "database"])
def test_a_limit_of_connections_is_told_as_one(conn, new_database, limited):
    role = f"narrow_{uuid4().hex}"
    with new_database() as url:
        name = conninfo_to_dict(url)["dbname"]
        conn.execute(f"create role {role} login {'connection limit 0' if limited == 'role' else ''}")
        if limited == "database":
            conn.execute(f"alter database {name} connection limit 0")
        try:
            with pytest.raises(errors.DatabaseUnreachable) as caught, translated("mesh at here"):
                psycopg.connect(url, user=role)
        finally:
            conn.execute(f"drop role {role}")
    assert caught.value.message.startswith("The database mesh at here has no connection free: connection to server ")
    assert f"too many connections for {limited}" in caught.value.message
    assert "CONNECTION LIMIT" in caught.value.hint


def test_a_connection_refused_for_want_of_space_is_told_as_one():
    refusal = 'connection failed: connection to server on socket "x" failed: FATAL:  could not write init file: '
    found = domain_error(psycopg.OperationalError(f"{refusal}No space left on device"), "mesh at here")
    assert type(found) is errors.DatabaseUnreachable
    assert found.message.startswith("The database mesh at here has no space left: connection to server")
    assert found.hint.startswith("Free space on")


def test_a_terminated_session_is_unreachable(conn):
    assert type(raised_by(conn, "select pg_terminate_backend(pg_backend_pid())")) is errors.DatabaseUnreachable


@pytest.mark.parametrize("number", [2**63, 2**70, 10**5000, 1.5, "12"], ids=["63", "70", "huge", "float", "text"])
@pytest.mark.parametrize(
    "use",
    [
        lambda mesh, number: mesh.run(changes.require_row, mesh.root, number),
        lambda mesh, number: mesh.run(snapshots.newest_before, mesh.root, number),
        lambda mesh, number: mesh.run(context.rewind_to, mesh.root, number),
        lambda mesh, number: mesh.run(travel.fork_at, mesh.root, "late", number),
        lambda mesh, number: mesh.run(travel.fork_session, mesh.root, number),
        lambda mesh, number: mesh.run(timers.cancel, mesh.session, number),
        lambda mesh, number: mesh.run(todos.add_todo, mesh.session, None, "later", [number]),
        lambda mesh, number: mesh.run(todos.claim_todo, mesh.session, mesh.root, number),
        lambda mesh, number: mesh.run(todos.finish_todo, mesh.session, None, number),
        lambda mesh, number: mesh.run(todos.release_todo, mesh.session, None, number),
    ],
    ids=range(10),
)
def test_a_number_that_no_bigint_holds_is_refused_before_it_is_sent(mesh, use, number):
    with pytest.raises(errors.BadArgument, match="is no whole number below"):
        use(mesh, number)


@pytest.mark.parametrize("number", [2**70, "12"])
def test_an_answer_to_no_number_of_a_message_is_refused(mesh, number):
    with pytest.raises(errors.UnknownMessage, match=f"no message {number} "):
        mesh.send(None, None, reply_to=number)


def test_what_is_not_postgresqls_passes_untouched():
    with pytest.raises(KeyError), translated():
        raise KeyError("x")
