"""Views and functions as the database has them, with the comment on each in ``agentmesh/sql``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import psycopg

from agentmesh.store.code import files
from scripts.reference.pages import code, prose, table

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "The verbs": ("fork", "send", "send_many", "wait_begin", "wait_take", "kill", "reap", "interrupt"),
    "People": (
        "answer",
        "rename",
        "set_mode",
        "set_budget",
        "set_model",
        "retry",
        "take_back",
        "fork_captured",
        "capture",
    ),
    "What the model is sent": ("clear", "mark", "rewind", "compact", "context", "spans", "marks"),
    "Sessions": ("start_session", "fork_session", "rename_session", "end_session", "delete_session"),
    "Looking": ("search", "subtree", "ancestors", "path"),
}
"""Those that somebody may call who is no worker of ours; the others are the engine's, and change with it."""

_COMMENT = re.compile(r"^comment on (function|view) agentmesh\.(\w+) is\s+'((?:[^']|'')*)';", re.MULTILINE)

_VIEWS = """
select c.relname,
  string_agg(format('`%s` %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where c.relnamespace = 'agentmesh'::regnamespace and c.relkind = 'v' and starts_with(c.relname, 'v_')
group by c.relname order by c.relname
"""
_SIGNATURES = """
select p.proname, p.proname || '(' || pg_get_function_arguments(p.oid) || ') → ' || pg_get_function_result(p.oid)
from pg_proc p where p.pronamespace = 'agentmesh'::regnamespace and p.proname = any(%s)
"""


@cache
def sentences() -> Mapping[tuple[str, str], str]:
    """Return the comment on each view and function, by kind and name."""
    found = (comment for text in files().values() for comment in _COMMENT.findall(text))
    return {(kind, name): words.replace("''", "'") for kind, name, words in found}


def views(connection: psycopg.Connection) -> str:
    """Return a section for each view."""
    rows = connection.execute(_VIEWS).fetchall()
    return "\n\n".join(
        f"### {name}\n\n{prose(sentences()['view', name])}\n\nColumns: {columns}." for name, columns in rows
    )


def functions(connection: psycopg.Connection) -> str:
    """Return a table of functions for each matter."""
    return "\n\n".join(f"### {title}\n\n{_table(connection, names)}" for title, names in FUNCTIONS.items())


def _table(connection: psycopg.Connection, names: tuple[str, ...]) -> str:
    rows: dict[str, str] = dict(connection.execute(_SIGNATURES, [list(names)]).fetchall())
    shown = ([code(_plain(rows[name])), sentences()["function", name]] for name in names)
    return table(["function", "does"], shown)


def _plain(signature: str) -> str:
    """Return a signature without what only the engine gives, and without the casts of its defaults."""
    without = re.sub(r",? ?caller (?:agentmesh\.)?caller DEFAULT NULL::(?:agentmesh\.)?caller", "", signature)
    return re.sub(r" DEFAULT ([^,)]+?)(?:::[a-z \[\]]+)?(?=[,)])", r" default \1", without).replace("NULL", "null")
