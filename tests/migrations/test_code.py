"""The database's code is what the files say, whatever was there before."""

from __future__ import annotations

import re
import threading

import psycopg
import pytest

from agentmesh.domain.errors import SchemaDiffers
from agentmesh.store import code, schema

LONGEST = 60
"""Lines of a function."""
FUNCTION = re.compile(r"^create function agentmesh\.(\w+).*?\$\$;", re.MULTILINE | re.DOTALL)
COMMENTED = re.compile(r"^comment on function agentmesh\.(\w+) is", re.MULTILINE)


@pytest.fixture
def changed(monkeypatch):
    """Let the files be others."""

    def change(**by_stem):
        texts = {name: text for name, text in code.files().items() if by_stem.get(stem(name), text) is not None}
        monkeypatch.setattr(
            code, "files", lambda: {name: by_stem.get(stem(name), text) for name, text in texts.items()}
        )
        for cached in (code.digest, schema.needed):
            cached.cache_clear()

    yield change
    monkeypatch.undo()
    for cached in (code.digest, schema.needed):
        cached.cache_clear()


def stem(name):
    return name.rpartition("/")[2].removesuffix(".sql")


def oids(conn):
    rows = "select proname::text, oid from pg_proc where pronamespace = 'agentmesh'::regnamespace"
    return dict(conn.execute(rows).fetchall())


def text(name):
    return code.files()[name]


def test_a_new_database_has_the_code_of_the_files(conn):
    assert code.differences(conn) == []


def test_only_the_file_that_changed_and_what_depends_on_it_is_made_anew(database_url, conn, changed):
    before = oids(conn)
    view = conn.execute("select 'agentmesh.v_agents'::regclass::oid").fetchone()
    other_view = conn.execute("select 'agentmesh.v_cost'::regclass::oid").fetchone()
    changed(names=text("functions/names.sql") + "\n-- one more line\n")
    schema.upgrade(database_url)
    after = oids(conn)
    anew = {name for name in before if before[name] != after[name]}
    assert anew == {*FUNCTION.findall(text("functions/names.sql")), "grant_roles", "grant_to_workers"}
    assert conn.execute("select 'agentmesh.v_agents'::regclass::oid").fetchone() != view, "it uses agentmesh.path"
    assert conn.execute("select 'agentmesh.v_cost'::regclass::oid").fetchone() == other_view
    assert code.differences(conn) == []


def test_an_upgrade_with_nothing_to_do_makes_nothing_anew(database_url, conn):
    before = oids(conn)
    schema.upgrade(database_url)
    assert oids(conn) == before


def test_what_a_file_made_goes_with_the_file(database_url, conn, changed):
    changed(pauses=None)
    schema.upgrade(database_url)
    assert "pause" not in oids(conn)


def test_a_function_with_other_arguments_replaces_the_old_one(database_url, conn, changed):
    other = text("functions/pauses.sql").replace("set_by text)", "set_by text, why text)")
    changed(pauses=other)
    schema.upgrade(database_url)
    found = conn.execute("select pronargs from pg_proc where proname = 'pause'").fetchall()
    assert found == [(6,)]


def test_a_mistake_in_a_file_leaves_everything_as_it_was(database_url, conn, changed):
    before, rows = oids(conn), conn.execute("select * from agentmesh.code order by 1").fetchall()
    changed(pauses=text("functions/pauses.sql").replace("begin\n", "begin\n  this is no statement;\n", 1))
    with pytest.raises(Exception, match="syntax error"):
        schema.upgrade(database_url)
    assert oids(conn) == before
    assert conn.execute("select * from agentmesh.code order by 1").fetchall() == rows


def test_new_functions_are_not_for_everybody(database_url, conn, changed):
    new = "create function agentmesh.secret() returns integer language sql as $$ select 1 $$;\n"
    changed(pauses=text("functions/pauses.sql") + new)
    schema.upgrade(database_url)
    allowed = "select has_function_privilege({!r}, 'agentmesh.secret()', 'execute')"
    assert conn.execute(allowed.format("agentmesh_reader")).fetchone() == (False,)
    assert conn.execute(allowed.format("agentmesh_worker")).fetchone() == (True,)


def test_somebodys_view_on_ours_is_named_and_kept(database_url, conn, changed):
    conn.execute("create view public.mine as select * from agentmesh.v_agents")
    changed(v_agents=text("views/v_agents.sql") + "\n-- another text\n")
    with pytest.raises(SchemaDiffers, match=r"view \S*mine depends on view \S*v_agents") as caught:
        schema.upgrade(database_url)
    assert "Drop what depends on" in caught.value.hint
    assert conn.execute("select * from public.mine").fetchall() == []


def test_workers_lose_their_agents_in_the_upgrades_own_commit(database_url, conn, changed):
    conn.execute("select agentmesh.join_worker('here', 'me', 1, 1, '{m}')")
    changed(pauses=text("functions/pauses.sql") + "\n-- another text\n")
    schema.upgrade(database_url)
    assert conn.execute("select count(*) from agentmesh.workers where ended_at is null").fetchone() == (0,)


def test_a_restored_dump_needs_no_upgrade(database_url, empty_database_url):
    from tests.fixtures import server

    dump, restore = (str(server.embedded().binary(name)) for name in ("pg_dump", "psql"))
    import subprocess

    sql = subprocess.run([dump, database_url], check=True, capture_output=True).stdout
    subprocess.run(
        [restore, "-q", "-v", "ON_ERROR_STOP=1", empty_database_url], input=sql, check=True, capture_output=True
    )
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        assert schema.state(connection) is schema.SchemaState.CURRENT
        assert code.differences(connection) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("drop function agentmesh.context", "function context is missing"),
        (None, "function lock_class differs"),
        (
            "create function agentmesh.extra() returns int language sql return 1",
            "function agentmesh.extra() is unexpected",
        ),
        (
            "create function agentmesh.fork(text) returns int language sql return 1",
            "function agentmesh.fork(text) is unexpected",
        ),
        ("drop view agentmesh.v_stuck", "view agentmesh.v_stuck is missing"),
        ("create view agentmesh.extra as select 1 as one", "view agentmesh.extra is unexpected"),
    ],
)
def test_what_somebody_changed_by_hand_is_named(conn, damage, said):
    (body,) = conn.execute("select pg_get_functiondef('agentmesh.lock_class'::regproc)").fetchone()
    conn.execute(damage or body.replace("1634562669", "1"))
    assert said in code.differences(conn)


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        ("alter function agentmesh.path(uuid) security invoker", "path"),
        ("alter function agentmesh.path(uuid) reset search_path", "path"),
        ("alter function agentmesh.path(uuid) set search_path = public, pg_catalog", "path"),
        ("alter function agentmesh.path(uuid) volatile", "path"),
        ("alter function agentmesh.path(uuid) strict", "path"),
        ("alter function agentmesh.subtree(uuid) rows 1000", "subtree"),
        ("alter function agentmesh.lock_class() security definer", "lock_class"),
        ("alter function agentmesh.lock_class() set jit = on", "lock_class"),
        ("alter function agentmesh.lock_class() cost 1", "lock_class"),
    ],
)
def test_a_setting_of_a_function_that_somebody_changed_is_named(conn, damage, name):
    conn.execute(damage)
    assert code.differences(conn) == [f"function {name} differs"]


@pytest.mark.parametrize(
    ("old", "new"), [(" returns text", " returns varchar"), ("agent uuid", "agent uuid default null")]
)
def test_another_result_or_default_of_a_function_is_named(conn, old, new):
    (whole,) = [found[0] for found in FUNCTION.finditer(text("functions/names.sql")) if found[1] == "path"]
    assert old in whole
    conn.execute("drop function agentmesh.path cascade")
    conn.execute(whole.replace(old, new, 1))
    assert "function path differs" in code.differences(conn)


@pytest.mark.parametrize("view", ["open_waits", "v_agents"])
def test_a_view_with_another_body_is_named(conn, view):
    (body,) = conn.execute("select pg_get_viewdef(%s::regclass)", [f"agentmesh.{view}"]).fetchone()
    conn.execute(f"create or replace view agentmesh.{view} as select * from ({body.rstrip(';')}) all_rows limit 1")
    assert code.differences(conn) == [f"view agentmesh.{view} differs"]


def test_an_option_of_a_view_that_somebody_changed_is_named(conn):
    conn.execute("alter view agentmesh.v_mail reset (security_barrier)")
    conn.execute("alter view agentmesh.v_cost set (security_invoker = true)")
    assert code.differences(conn) == ["view agentmesh.v_cost differs", "view agentmesh.v_mail differs"]


def test_looking_for_differences_leaves_nothing_behind(conn):
    code.differences(conn)
    assert conn.execute("select count(*) from pg_class where relnamespace = pg_my_temp_schema()").fetchone() == (0,)
    assert conn.execute("select count(*) from pg_proc where pronamespace = pg_my_temp_schema()").fetchone() == (0,)


def test_who_may_make_nothing_temporary_still_learns_what_is_missing(conn, database_url):
    conn.execute(f"revoke temporary on database {conn.info.dbname} from public")
    conn.execute("drop function agentmesh.context")
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("set role agentmesh_worker")
        assert code.differences(other) == ["function context is missing"]


@pytest.mark.slow
def test_an_upgrade_puts_back_what_somebody_changed(database_url, conn):
    conn.execute("drop function agentmesh.context")
    conn.execute("drop view agentmesh.v_stuck")
    conn.execute("alter function agentmesh.path(uuid) security invoker")
    conn.execute("alter view agentmesh.v_mail reset (security_barrier)")
    schema.upgrade(database_url)
    assert code.differences(conn) == []


def test_every_function_is_written_once(conn):
    names = [name for each in code.files().values() for name in FUNCTION.findall(each)]
    assert sorted(names) == sorted(set(names))
    assert set(names) <= set(oids(conn))


def test_no_function_is_longer_than_a_screen():
    found = {m[1]: m[0].count("\n") + 1 for each in code.files().values() for m in FUNCTION.finditer(each)}
    assert {name: lines for name, lines in found.items() if lines > LONGEST} == {}


def test_migrations_call_no_function_of_the_code():
    """The code of an old release is not there when a migration runs: it was dropped, and the new one comes after."""
    names = {name for each in code.files().values() for name in FUNCTION.findall(each)}
    called = re.compile(r"agentmesh\.(" + "|".join(sorted(names)) + r")\s*\(")
    for path in sorted((schema.migrations() / "versions").glob("[0-9]*")):
        assert not called.findall(path.read_text(encoding="utf-8")), path.name


def test_calls_under_an_upgrade_end_or_are_refused_in_words(database_url, changed):
    """A verb that runs while its function is replaced never ends in an error of PostgreSQL's insides."""
    changed(names=text("functions/names.sql") + "\n-- another text\n")
    errors: list[psycopg.Error] = []
    stop = threading.Event()

    def call():
        with psycopg.connect(database_url, autocommit=True) as connection:
            while not stop.is_set():
                try:
                    connection.execute("select agentmesh.normal_name('x')")
                except psycopg.Error as error:
                    errors.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    schema.upgrade(database_url)
    stop.set()
    calling.join()
    assert [error for error in errors if not isinstance(error, psycopg.errors.UndefinedFunction)] == []
