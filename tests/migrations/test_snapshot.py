"""What is written from the migrations is what they make. AGENTMESH_UPDATE_SCHEMA=1 (`make schema`) writes it anew."""

from __future__ import annotations

import os

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from agentmesh.store import schema
from tests.migrations import manifests, snapshot

UPDATE = os.environ.get("AGENTMESH_UPDATE_SCHEMA") == "1"


def test_the_committed_schema_is_that_of_the_newest_revision(database_url, conn):
    if conn.info.server_version // 10000 != snapshot.MAJOR:
        pytest.skip(f"the file is as PostgreSQL {snapshot.MAJOR} prints it")
    text = snapshot.dump(database_url)
    if UPDATE:
        snapshot.FILE.write_text(text, encoding="utf-8")
    assert snapshot.FILE.read_text(encoding="utf-8") == text


def test_the_list_of_each_revision_from_0013_is_what_the_migrations_make_on_this_postgresql(empty_database_url):
    folder = schema.manifests()
    revisions = []
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        chain = list(ScriptDirectory.from_config(schema.alembic_config(conn)).walk_revisions())[::-1]
        for revision in [each.revision for each in chain if each.revision >= manifests.FIRST]:
            command.upgrade(schema.alembic_config(psycopg.connect(empty_database_url)), revision)
            revisions.append(revision)
            file, text = folder / f"{revision}.txt", manifests.text(conn)
            if UPDATE:
                file.write_text(text, encoding="utf-8")
            assert file.exists(), f"{file.name} is missing: `make schema` writes it"
            assert file.read_text(encoding="utf-8") == text
    assert sorted(path.stem for path in folder.iterdir()) == revisions
