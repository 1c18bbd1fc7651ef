"""A database is what its revision stands for, or is told so before anything is done to it."""

from __future__ import annotations

import re
import subprocess

import psycopg
import pytest
from alembic import command
from psycopg.conninfo import conninfo_to_dict

from agentmesh.domain.errors import SchemaBehind, SchemaDiffers
from agentmesh.store import manifest, schema
from agentmesh.store.schema import SchemaState
from tests.fixtures import server
from tests.migrations import manifests

DAMAGES = {
    "drop function agentmesh.context": "function context(uuid, int8) is missing",
    "alter function agentmesh.fork set lock_timeout = 0": "function fork(uuid, text, text, caller, int8) differs",
    "alter function agentmesh.tick stable": "function tick(int8, _uuid, _int8) differs",
    "create function agentmesh.fork(text) returns int language sql return 1": "function fork(text) is one too many",
    "alter table agentmesh.mail alter body drop not null": "column mail.body differs",
    "alter table agentmesh.mail rename body to words": "column mail.body is missing",
    "alter table agentmesh.mail add urgent boolean": "column mail.urgent is one too many",
    "alter table agentmesh.mail alter sent_at drop default": "column mail.sent_at differs",
    "alter table agentmesh.mail drop constraint mail_pkey cascade": "constraint mail.mail_pkey is missing",
    "alter table agentmesh.pauses set unlogged": "table pauses differs",
    "create table agentmesh.diary (at date)": "table diary is one too many",
    "drop index agentmesh.mail_unread": "index mail_unread is missing",
    "drop view agentmesh.v_stuck": "view v_stuck is missing",
    "alter type agentmesh.caller rename attribute note to remark": "column caller.note is missing",
    "alter domain agentmesh.cap_usd set not null": "type cap_usd differs",
    "create trigger nosy before insert on agentmesh.mail execute function suppress_redundant_updates_trigger()": (
        "trigger mail.nosy is one too many"
    ),
}

PRIVATE = (
    "create index own on agentmesh.mail (body)",
    "create schema theirs create table mail (id int)",
    "create function public.fork(int) returns int language sql return 1",
    "alter function agentmesh.fork owner to pg_read_all_data",
    "revoke all on agentmesh.v_agents from public",
    "alter table agentmesh.mail set (fillfactor = 70)",
    "set search_path = agentmesh",
)
"""What is the owner's own matter."""


@pytest.fixture(scope="module")
def template_0013(new_database):
    """Name of a database of revision 0013, to be cloned: it is frozen, so tests may name what is in it."""
    with new_database() as url:
        command.upgrade(schema.alembic_config(psycopg.connect(url)), manifests.FIRST)
        yield conninfo_to_dict(url)["dbname"]


@pytest.fixture
def old_url(new_database, template_0013):
    """URL of a database of revision 0013."""
    with new_database(template_0013) as url:
        yield url


@pytest.fixture
def old(old_url):
    """A connection to it."""
    with psycopg.connect(old_url, autocommit=True) as connection:
        yield connection


def differences(connection):
    found = manifest.live(connection)
    wanted = manifest.stored(schema.manifests() / f"{found[manifest.REVISION]}.txt")
    assert wanted
    return manifest.differences(wanted, found)


@pytest.fixture
def refused(old_url, old):
    """Run something that refuses the old database and leaves all of it as it was; return the error."""

    def run(act):
        before = manifest.live(old)
        with pytest.raises(SchemaDiffers) as caught:
            act(old_url)
        assert manifest.live(old) == before
        return caught.value

    return run


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_missing_changed_or_added_is_named(old, damage):
    assert differences(old) == []
    old.execute(damage)
    assert DAMAGES[damage] in differences(old)


def test_a_table_that_is_missing_or_too_many_is_named_without_what_is_in_it(old):
    old.execute("alter table agentmesh.pauses rename to rests")
    said = [one for one in differences(old) if "pauses" in one or "rests" in one]
    assert said == ["table pauses is missing", "table rests is one too many"]


def test_owners_rights_indexes_and_other_schemas_are_nobodys_business(old):
    for statement in PRIVATE:
        old.execute(statement)
    assert differences(old) == []


def test_a_restored_dump_is_what_it_was(database_url, empty_database_url):
    dump, restore = (str(server.embedded().binary(name)) for name in ("pg_dump", "psql"))
    text = subprocess.run([dump, database_url], check=True, capture_output=True).stdout
    subprocess.run(
        [restore, "-q", "-v", "ON_ERROR_STOP=1", empty_database_url], input=text, check=True, capture_output=True
    )
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        assert differences(connection) == []


def test_a_database_of_0013_goes_on_to_the_newest(old_url, old):
    with pytest.raises(SchemaBehind):
        schema.ensure(old_url, automatic=False)
    schema.ensure(old_url, automatic=True)
    assert schema.state(old) is SchemaState.CURRENT
    assert differences(old) == []


@pytest.mark.parametrize(
    "act",
    [
        schema.upgrade,
        lambda url: schema.ensure(url, automatic=True),
        lambda url: schema.ensure(url, automatic=False),
    ],
    ids=["upgrade", "automatic", "refusing"],
)
def test_one_that_is_not_what_0013_stands_for_is_refused_with_what_differs(old, refused, act):
    old.execute("drop function agentmesh.begin_step")
    old.execute("alter table agentmesh.mail rename body to words")
    error = refused(act)
    assert re.fullmatch(
        r"The database \S+ at \S+ says that its schema is 0013, but it is not: column mail\.body is missing; "
        r"function begin_step\(uuid, caller, int8, jsonb\) is missing; .+; and \d more\.",
        error.message,
    )
    assert "drop schema agentmesh cascade" in error.hint
    assert schema.revision(old) == "0013"


def test_many_differences_are_counted(old, refused):
    old.execute("alter table agentmesh.pauses add a int, add b int, add c int, add d int, add e int, add f int")
    error = refused(schema.upgrade)
    assert error.message.endswith("column pauses.c is one too many; and 3 more.")


def test_the_advice_names_the_embedded_servers_folder(old, refused, tmp_path):
    old.execute("drop view agentmesh.v_stuck")
    error = refused(lambda url: schema.ensure(url, automatic=True, folder=tmp_path))
    assert f"delete {tmp_path} " in error.hint
    assert "AGENTMESH_DATA_DIR" in error.hint


def test_a_revision_that_no_release_made_is_refused(old, refused):
    old.execute("update agentmesh.alembic_version set version_num = '0011'")
    assert refused(schema.upgrade).message.endswith("has schema 0011, which no release of agentmesh made.")


def test_an_ordinary_start_does_not_look_at_the_catalogue(database_url, conn):
    conn.execute("drop view agentmesh.v_stuck")
    schema.ensure(database_url, automatic=False)
