"""What one statement of the program takes: milliseconds, and rows that PostgreSQL reads for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import psycopg

_ROWS: Final = (
    "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) from pg_stat_xact_user_tables"
    " where schemaname = 'agentmesh'"
)

Statement = Callable[[psycopg.Connection], Any]
"""Executes it."""


def timed(conn: psycopg.Connection, statement: Statement) -> float:
    """Return the milliseconds of a statement, which is rolled back."""
    began = time.perf_counter()
    statement(conn)
    took = time.perf_counter() - began
    conn.rollback()
    return took * 1e3


def rows_read(conn: psycopg.Connection, statement: Statement) -> float:
    """Return how many rows a statement reads, of tables and through indexes; it is rolled back."""
    before = conn.execute(_ROWS).fetchone()
    statement(conn)
    after = conn.execute(_ROWS).fetchone()
    conn.rollback()
    assert before is not None
    assert after is not None
    return float(after[0] - before[0])
