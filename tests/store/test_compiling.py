"""What PostgreSQL compiles: nothing of ours, whose statements run for a millisecond."""

from __future__ import annotations

import psycopg


def test_functions_that_rule_out_ways_to_read_compile_nothing(conn: psycopg.Connection) -> None:
    # Up to PostgreSQL 17 a way that is ruled out, where there is no other, looks expensive enough to be compiled.
    ruling_out = conn.execute(
        "select proname, 'jit=off' = any (proconfig) from pg_proc"
        " where pronamespace = 'agentmesh'::regnamespace and array_to_string(proconfig, ' ') ~ 'enable_[a-z]+=off'"
    ).fetchall()
    assert len(ruling_out) > 40
    assert [name for name, is_plain in ruling_out if not is_plain] == []
