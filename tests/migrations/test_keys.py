"""What deletes a row finds the rows that go with it by an index."""

from __future__ import annotations

import psycopg

_BARE = """
select c.conrelid::regclass::text || ': ' || pg_get_constraintdef(c.oid) from pg_constraint c
where c.connamespace = 'agentmesh'::regnamespace and c.contype = 'f' and not exists (
  select from pg_index i where i.indrelid = c.conrelid
    and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) ~ '^\\(\\w+ IS NOT NULL\\)$')
    and (string_to_array(i.indkey::text, ' ')::int2[])[1:cardinality(c.conkey)] @> c.conkey)
order by 1
"""


def test_every_foreign_key_has_an_index(conn: psycopg.Connection):
    assert [row[0] for row in conn.execute(_BARE)] == []
