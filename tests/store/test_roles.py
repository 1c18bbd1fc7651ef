"""The roles: a worker runs agents, a person decides what they may, the reader reads, and none of them can do more."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb

from agentmesh.domain.budgets import Cap, Unit
from agentmesh.domain.errors import DatabaseError
from agentmesh.domain.states import PermissionMode
from agentmesh.store import agents, budgets, context, person, requests, roles, schema, sessions
from agentmesh.store.schema import SchemaState
from agentmesh.store.tx import Database
from tests.fixtures import server
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.invariants import violations

_count = itertools.count(1)


@pytest.fixture
def login(admin: psycopg.Connection) -> Iterator[Callable[..., str]]:
    """Make a role that may log in, a member of others, and return the URL of a database with it as user."""
    made: list[sql.Identifier] = []

    def make(url: str, *member_of: str) -> str:
        name, password = f"{server.prefix()}_{os.getpid()}_login_{next(_count)}", secrets.token_hex(8)
        made.append(sql.Identifier(name))
        admin.execute(sql.SQL("create role {} login password {}").format(made[-1], sql.Literal(password)))
        for role in member_of:
            admin.execute(sql.SQL("grant {} to {}").format(sql.Identifier(role), made[-1]))
        parts = {**conninfo_to_dict(url), "user": name, "password": password}
        return f"postgresql:///?{urlencode({key: str(value) for key, value in parts.items()})}"

    yield make
    for name in made:
        # Its database, asked for after this, is gone by now.
        admin.execute(sql.SQL("drop role {}").format(name))


@pytest.fixture
def worker_url(login: Callable[..., str], database_url: str) -> str:
    """A way in with the rights of a worker and no others."""
    return login(database_url, roles.WORKER)


@pytest.fixture
def person_url(login: Callable[..., str], database_url: str) -> str:
    """A way in with the rights of a person and no others."""
    return login(database_url, roles.PERSON)


@pytest.fixture
def limited(person_url: str, conn: psycopg.Connection, tmp_path: Path) -> Iterator[Rig]:
    """A rig that does everything as a person; only its looks are the owner's."""
    rig = Rig(person_url, conn, tmp_path)
    yield rig
    assert violations(conn) == []
    rig.close()


def test_a_worker_runs_what_a_person_began_with_all_verbs(limited: Rig, worker_url: str):
    rig = limited
    for url in (rig.url, worker_url):
        schema.ensure(url, automatic=False)
    rig.script(
        "root",
        do(call("fork", name="child", prompt="work"), call("fork", name="victim", prompt="hang")),
        do(call("wait", timeout=60, from_agents=["child"])),
        do(call("bash", command="echo made > file"), call("read", path="file")),
        do(call("write", path="other", content="new"), call("todo_write", items=[])),
        do(call("task", description="count", prompt="[count] Count.")),
        do(call("kill", agent_id="victim"), call("list_agents")),
        say("all done"),
    )
    rig.script("victim", do(call("wait", timeout=600)))
    rig.script("child", do(call("send", to="parent", message="a report")), say("ended"))
    rig.worker(url=worker_url)
    assert rig.run() == "all done"
    assert [result["results"][0]["status"] for result in rig.results("wait")] == ["received"]
    assert rig.status("victim") == "dead"
    assert [result for result in rig.results() if "error" in result] == []


def test_what_a_person_does_needs_no_owner(limited: Rig, worker_url: str):
    rig = limited
    rig.root = rig.session(mode=PermissionMode.ASK)
    session = rig.db.run(agents.get, rig.root).session_id
    rig.script("root", do(call("bash", command="touch made"), call("ask_user", question="Which?")), say("done"))
    rig.db.run(budgets.set_budget, session, Cap(Unit.USD, Decimal(5)))
    rig.db.run(requests.allow, session, [{"effect": "allow", "tool": "bash", "pattern": "make *"}])
    rig.worker(url=worker_url)
    rig.prompt()
    rig.until(lambda: len(rig.db.run(requests.pending, session)) == 2, "two requests")
    for request, words in zip(
        rig.db.run(requests.pending, session), ({"decision": "always"}, {"text": "this"}), strict=True
    ):
        rig.db.run(requests.answer, request.id, words, "a person")
    rig.rest()
    assert rig.last() == ("done", None)
    rig.db.run(requests.forget_rules, session)
    rig.db.run(requests.set_attended, session, False)
    rig.db.run(sessions.set_mode, session, PermissionMode.ALL)
    rig.db.run(person.rename_session, session, "a title")
    rig.db.run(person.begin_capture, rig.root)
    rig.db.run(person.capture, rig.root, "captured")
    rig.db.run(agents.rename, rig.db.run(person.fork_captured, rig.root), "another")
    rig.db.run(context.mark, rig.root, "here")
    rig.db.run(context.rewind, rig.root, "here")
    rig.db.run(person.note, rig.root, {"text": "a note"})
    rig.db.run(person.set_model, rig.root, "sim/other")
    rig.rest()
    rig.db.run(context.compact, rig.root)
    rig.rest()
    rig.db.run(context.clear, rig.root)
    rig.db.run(sessions.end_session, session)
    rig.db.run(sessions.reap, session)
    rig.db.run(sessions.delete_session, session)
    assert rig.one("select count(*) from agentmesh.agents where session_id = %s", session) == 0
    assert rig.one("select count(*) from agentmesh.mail where session_id = %s", session) == 0


NOBODY_MAY = [
    "create table agentmesh.mine ()",
    "create table public.mine ()",
    "create schema mine",
    "create function agentmesh.mine() returns void language sql as ''",
    "create or replace function agentmesh.release_reservation(agent uuid) returns void language sql as ''",
    "alter table agentmesh.agents add column mine text",
    "alter table agentmesh.transcript disable trigger all",
    "alter function agentmesh.path(uuid) owner to current_user",
    "alter view agentmesh.v_agents set (security_barrier = false)",
    "create trigger mine before insert on agentmesh.mail execute function suppress_redundant_updates_trigger()",
    "create index on agentmesh.mail (body)",
    "drop table agentmesh.mail",
    "drop view agentmesh.v_mail",
    "drop function agentmesh.append",
    "drop schema agentmesh cascade",
    "truncate agentmesh.transcript",
    "do $$ begin lock table agentmesh.agents in access exclusive mode; end $$",
    "delete from agentmesh.transcript",
    "delete from agentmesh.mail",
    "delete from agentmesh.agents",
    "delete from agentmesh.sessions",
    "delete from agentmesh.model_calls",
    "delete from agentmesh.tool_calls",
    "update agentmesh.transcript set content = '{}'",
    "update agentmesh.mail set body = 'forged'",
    "update agentmesh.mail set sender = null",
    "update agentmesh.agents set permissions = '[]'",
    "update agentmesh.agents set session_id = gen_random_uuid()",
    "update agentmesh.tool_calls set arguments = '{}'",
    "update agentmesh.requests set arguments = '{}'",
    "update agentmesh.model_calls set cost_usd = 0",
    "update agentmesh.settings set system_prompt = ''",
    "update agentmesh.sessions set workdir = '/'",
    "update agentmesh.alembic_version set version_num = '0001'",
    "insert into agentmesh.alembic_version values ('0001')",
    "select agentmesh.grant_roles()",
    "select rolpassword from pg_authid",
    "select * from other.secrets",
    "select pg_read_file('/etc/passwd')",
    "copy (select 1) to program 'true'",
    "copy agentmesh.mail from '/etc/passwd'",
    "create role mine",
    "alter role agentmesh_reader superuser",
    "set role pg_read_all_data",
    "alter system set fsync = off",
    "select lo_import('/etc/passwd')",
]
A_WORKER_MAY_NOT = [
    "select agentmesh.start_session('/', 'h', 'u', 'm', 'p', '[]', permission_mode => 'all')",
    "select agentmesh.end_session(gen_random_uuid())",
    "select agentmesh.set_mode(gen_random_uuid(), 'all')",
    "select agentmesh.set_budget(gen_random_uuid(), 'usd', 1000)",
    'select agentmesh.answer(gen_random_uuid(), \'{"decision": "always"}\')',
    "select agentmesh.allow(gen_random_uuid(), '[]')",
    "select agentmesh.forget_rules(gen_random_uuid())",
    "select agentmesh.rename(gen_random_uuid(), 'x')",
    "update agentmesh.agents set name = 'x'",
    "insert into agentmesh.sessions (workdir, host, os_user, permission_mode) values ('/', 'h', 'u', 'all')",
    "update agentmesh.sessions set permission_mode = 'all'",
    "update agentmesh.sessions set rules = '[]'",
    "update agentmesh.sessions set max_tokens = null",
    "update agentmesh.sessions set max_cost_usd = null",
    "update agentmesh.sessions set max_agents = 1000",
    "update agentmesh.agents set max_tokens = null",
    "update agentmesh.agents set max_cost_usd = null",
    "insert into agentmesh.requests (answer) values ('{}')",
    "set role agentmesh_person",
    "grant agentmesh_person to current_user",
    "alter table agentmesh.agents disable trigger permissions_only_narrow",
]
THE_READER_MAY_NOT = [
    *(f"select 1 from agentmesh.{table}" for table in ("sessions", "agents", "transcript", "mail", "alembic_version")),
    "insert into agentmesh.mail (session_id, recipient, body) values (gen_random_uuid(), gen_random_uuid(), 'x')",
    "select * from agentmesh.v_agents for update",
    *(
        f"select agentmesh.{verb}"
        for verb in (
            "send(null, null, 'x')",
            "kill(null)",
            "fork(null, 'x')",
            "interrupt(null)",
            "delete_session(null)",
            "end_session(null)",
            "start_session('/', 'h', 'u', 'm', 'p', '[]')",
            "append(null, 'user', '{}')",
            "set_budget(null, null, 1)",
            "answer(null, '{}')",
            "join_worker('h', 'u', 1, 1, '{}', true, null)",
        )
    ),
    "set role agentmesh_worker",
    *A_WORKER_MAY_NOT,
]


@pytest.fixture
def refused(conn: psycopg.Connection) -> Callable[[psycopg.Connection, str], None]:
    """See that a statement is refused for want of rights, and changes nothing."""
    conn.execute("create schema other")
    conn.execute("create table other.secrets ()")

    def see(limited: psycopg.Connection, statement: str) -> None:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            limited.execute(statement)

    return see


def test_a_worker_is_refused_what_is_not_its_work(worker_url: str, refused):
    with psycopg.connect(worker_url, autocommit=True) as limited:
        for statement in (*NOBODY_MAY, *A_WORKER_MAY_NOT):
            refused(limited, statement)


def test_a_person_is_refused_what_is_the_owners(person_url: str, refused):
    with psycopg.connect(person_url, autocommit=True) as limited:
        for statement in NOBODY_MAY:
            refused(limited, statement)


@pytest.mark.parametrize(
    ("above", "below", "is_narrower"),
    [
        ([], [], True),
        ([], [[]], True),
        ([], [[], ["allow"]], True),
        ([], [["allow"]], False),
        ([["deny"]], [["deny"]], True),
        ([["deny"]], [["deny"], ["allow"]], True),
        ([["deny"]], [], False),
        ([["deny"]], [[], ["deny"]], False),
        ([["deny"]], [["deny", "allow"]], False),
        ([["deny"], ["ask"]], [["deny"]], False),
        ([["deny"], ["ask"]], [["ask"], ["deny"]], False),
    ],
)
def test_no_agent_is_made_that_may_more_than_its_parent(
    rig: Rig, worker_url: str, above: list[list[str]], below: list[list[str]], is_narrower: bool
):
    def stored(layers: list[list[str]]) -> Jsonb:
        return Jsonb([[{"effect": effect, "tool": "bash", "pattern": "*"} for effect in layer] for layer in layers])

    rig.conn.execute("update agentmesh.agents set permissions = %s where id = %s", [stored(above), rig.root])
    insert = """
        insert into agentmesh.agents
          (session_id, parent_id, name, depth, status, model, settings_id, permissions, forked_at, clean, workspace_id)
        select session_id, id, 'child', 1, 'idle', model, settings_id, %s, 0, true, workspace_id
        from agentmesh.agents where id = %s
    """
    with psycopg.connect(worker_url, autocommit=True) as limited:
        if is_narrower:
            limited.execute(insert, [stored(below), rig.root])
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not do more than its parent"):
                limited.execute(insert, [stored(below), rig.root])


def test_a_reader_is_refused_all_that_and_every_change(login, database_url: str, refused):
    with psycopg.connect(login(database_url, "agentmesh_reader"), autocommit=True) as limited:
        for statement in (*NOBODY_MAY, *THE_READER_MAY_NOT):
            refused(limited, statement)
        assert limited.execute("select count(*) from agentmesh.v_agents").fetchone() == (0,)


def test_who_is_no_member_gets_a_sentence_that_names_the_role(login, database_url: str):
    url = login(database_url)
    with pytest.raises(DatabaseError, match="permission denied") as told:
        schema.ensure(url, automatic=False)
    assert roles.WORKER in told.value.hint
    with Database(url, role="test") as stranger, pytest.raises(DatabaseError):
        stranger.run(sessions.list_sessions)


def test_the_workers_have_a_right_to_every_function_and_table_and_the_public_has_none(conn: psycopg.Connection):
    """A migration that makes one must say so in grant_roles."""
    functions = conn.execute("""
        select proname::text, has_function_privilege('agentmesh_worker', oid, 'execute'),
          has_function_privilege('public', oid, 'execute')
        from pg_proc where pronamespace = 'agentmesh'::regnamespace
    """).fetchall()
    granting = {"grant_roles", "grant_to_workers"}
    assert {name for name, worker, _ in functions if not worker} == {*granting, *roles.FOR_PERSONS}
    for_people = conn.execute("""
        select proname::text from pg_proc
        where pronamespace = 'agentmesh'::regnamespace and has_function_privilege('agentmesh_person', oid, 'execute')
    """).fetchall()
    assert {name for name, *_ in functions} - {name for (name,) in for_people} == granting
    assert {name for name, _, public in functions if public} == set()
    tables = conn.execute("""
        select relname::text, has_table_privilege('agentmesh_worker', oid, 'select'),
          has_table_privilege('agentmesh_reader', oid, 'select')
        from pg_class where relnamespace = 'agentmesh'::regnamespace and relkind in ('r', 'v')
    """).fetchall()
    assert {name for name, worker, _ in tables if not worker} == set()
    assert {name for name, _, reader in tables if reader} == {name for name, _, _ in tables if name.startswith("v_")}


def test_what_the_functions_write_is_what_the_workers_may_write(conn: psycopg.Connection):
    """Neither less, found when it happens, nor more.

    Only what erases or moves sessions, or keeps settings, has its owner's rights.
    """
    bodies = conn.execute("""
        select proname::text, prosrc, prosecdef from pg_proc
        where pronamespace = 'agentmesh'::regnamespace and prosrc ~ '(insert|update|delete)'
    """).fetchall()
    assert {name for name, body, definer in bodies if definer and re.search(_WRITES, body)} == {
        *_ERASING,
        *roles.MOVING,
    }
    queries = Path(schema.__file__).parents[1].joinpath("sql", "queries")
    files = [path.read_text() for path in queries.glob("*.sql") if path.stem != "code"]  # which the owner runs
    texts = [body for name, body, _ in bodies if name not in (*_ERASING, *roles.MOVING, *roles.FOR_PERSONS)]
    texts += files
    wanted = {want for text in texts for want in written(text)}
    assert _granted(conn, roles.WORKER) == wanted
    decided = {
        want
        for name, body, _ in bodies
        if name in roles.FOR_PERSONS and name not in roles.MOVING
        for want in written(body)
    }
    assert _granted(conn, roles.PERSON) == {*decided, ("insert", "arrival_rows", "")} - wanted, (
        "COPY brings what arrives"
    )
    assert (
        wanted & {("insert", "sessions", ""), *(("update", "sessions", name) for name in ("permission_mode", "rules"))}
        == set()
    )


_ERASING = {"delete_session", "begin_erasing", "erase_some", "keep_settings", "forget_settings"}


def _granted(conn: psycopg.Connection, role: str) -> set[tuple[str, str, str]]:
    """Return what a role was given itself: (insert | update | delete, table, column of an update)."""
    found = conn.execute(
        """
        select distinct privilege_type, table_name::text, column_name::text
        from information_schema.column_privileges
        where grantee = %(role)s and privilege_type in ('INSERT', 'UPDATE')
        union all
        select privilege_type, table_name, '' from information_schema.table_privileges
        where grantee = %(role)s and privilege_type in ('DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER')
        """,
        {"role": role},
    )
    return {(kind.lower(), table, column if kind == "UPDATE" else "") for kind, table, column in found}


_WRITES = r"\b(insert into|update|delete from) agentmesh\.(\w+)"


def written(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a text of SQL writes: (insert | update | delete, table, column of an update)."""
    for statement in re.sub(r"--.*", "", text).split(";"):
        for found in re.finditer(_WRITES, statement):
            kind, table = found[1].split()[0], found[2]
            if kind != "update":
                yield kind, table, ""
            if kind != "delete":
                _, _, assignments = statement[found.end() :].partition("do update set" if kind == "insert" else "set")
                yield from (("update", table, column) for column in _assigned(assignments))


def _assigned(text: str) -> Iterator[str]:
    """Yield the names before the = of ``a = 1, b = f(2, 3) where ...``."""
    depth, start = 0, True
    for token in re.finditer(r"\bcase\b|\bend\b|\b(?:from|where|returning)\b|[(),]|\b\w+\s*(?==)", text):
        word = token[0].strip()
        if word in ("(", "case"):
            depth += 1
        elif word in (")", "end"):
            depth -= 1
            if depth < 0:
                return
        elif word in ("from", "where", "returning"):
            if depth == 0:
                return
        elif word == ",":
            start = start or depth == 0
        elif depth == 0 and start:
            start = False
            yield word


@pytest.mark.usefixtures("template")  # it makes the server's two roles, which an owner without that right cannot
def test_an_owner_needs_no_more_than_a_database_in_which_it_may_create(login, admin, empty_database_url: str):
    url = login(empty_database_url)
    owner = conninfo_to_dict(url)["user"]
    database = str(conninfo_to_dict(empty_database_url)["dbname"])
    admin.execute(sql.SQL("alter database {} owner to {}").format(sql.Identifier(database), sql.Identifier(str(owner))))
    schema.upgrade(url)
    with psycopg.connect(url, autocommit=True) as conn:
        assert schema.state(conn) is SchemaState.CURRENT
        assert roles.settle(conn) == []
    with psycopg.connect(login(empty_database_url, roles.PERSON), autocommit=True) as worker:
        new = sessions.NewSession("/tmp", "h", "u", "sim/m", "prompt", [])
        session = agents.get(worker, sessions.start_session(worker, new)).session_id
        assert roles.settle(worker) == []  # not its own: it changes nothing
        sessions.delete_session(worker, session)


def test_rights_that_were_lost_on_the_way_come_back_with_an_upgrade(conn: psycopg.Connection, worker_url: str):
    """A dump restored without privileges: no rights for the roles, and EXECUTE for everybody."""
    for what in ("all on all tables in schema", "all on all functions in schema", "usage on schema"):
        conn.execute(f"revoke {what} agentmesh from agentmesh_worker, agentmesh_person, agentmesh_reader".encode())
    conn.execute("grant execute on all functions in schema agentmesh to public")
    assert roles.settle(conn) == []
    test_the_workers_have_a_right_to_every_function_and_table_and_the_public_has_none(conn)
    test_what_the_functions_write_is_what_the_workers_may_write(conn)
    with psycopg.connect(worker_url, autocommit=True) as worker:
        assert sessions.list_sessions(worker) == []
