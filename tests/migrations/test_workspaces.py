"""Migration 0003 gives each session of an older database its directory, and goes down again."""

from __future__ import annotations

import psycopg
from alembic import command

from agentmesh.store import schema
from tests.fixtures.invariants import violations


def test_sessions_and_agents_of_before_work_in_one_directory_each(empty_database_url):
    config = schema.alembic_config(psycopg.connect(empty_database_url))
    command.upgrade(config, "0002")
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute("""
            set session_replication_role = replica;
            insert into agentmesh.settings values (repeat('0', 64), '', '[]');
            insert into agentmesh.sessions (id, workdir, host, os_user, root_id)
              select gen_random_uuid(), '/w/' || n, 'h', 'u', gen_random_uuid() from generate_series(1, 3) n;
            insert into agentmesh.agents (id, session_id, name, depth, status, settings_id)
              select root_id, id, 'root', 0, 'idle', repeat('0', 64) from agentmesh.sessions;
            insert into agentmesh.agents (session_id, parent_id, name, depth, status, settings_id, forked_at)
              select id, root_id, 'child', 1, 'idle', repeat('0', 64), 0 from agentmesh.sessions;
            set session_replication_role = origin;
        """)
    schema.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        found = conn.execute(
            "select w.path, w.kind, w.state, count(*) from agentmesh.agents a"
            " join agentmesh.workspaces w on w.id = a.workspace_id and w.session_id = a.session_id group by 1, 2, 3"
            " order by 1"
        )
        assert found.fetchall() == [(f"/w/{n}", "shared", "ready", 2) for n in (1, 2, 3)]
        assert violations(conn) == []
    command.downgrade(schema.alembic_config(psycopg.connect(empty_database_url)), "0002")
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        assert conn.execute("select count(*) from agentmesh.agents").fetchone() == (6,)
