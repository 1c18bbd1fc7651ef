"""The database's code: the functions, views and grants whose current text is in ``agentmesh/sql``.

Migrations carry tables, types, constraints and data. The code is not migrated. An upgrade drops the objects of the
files that changed, and what depends on them, and creates them again from the text. ``agentmesh.code`` keeps the digest
of each file that is in the database, and a list of what the file made.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psycopg
from psycopg import errors as pg

import agentmesh
from agentmesh import sql
from agentmesh.domain.errors import SchemaDiffers
from agentmesh.sql import statement

_FOLDER: Final = Path(sql.__file__).parent
_GRANTS: Final = "grants.sql"
"""Applied whenever anything else is, because a new table or function has no rights yet."""
_FUNCTION: Final = re.compile(r"^create function agentmesh\.(\w+)(\(.*?\$\$.*?\$\$);", re.MULTILINE | re.DOTALL)
_VIEW: Final = re.compile(r"^create view agentmesh\.(\w+)(.*?);$", re.MULTILINE | re.DOTALL)


@cache
def files() -> Mapping[str, str]:
    """Return the text of each file by its name, in the order in which they are applied; read once per process."""
    names = [*sorted(_FOLDER.glob("functions/*.sql")), *sorted(_FOLDER.glob("views/*.sql")), _FOLDER / _GRANTS]
    return MappingProxyType({path.relative_to(_FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in names})


@cache
def digest() -> str:
    """Return the CRC-32 of all files together, in hexadecimal: the same text, the same code.

    It is compared at every start: ``hashlib`` would take longer to import than all files take to read.
    """
    return f"{zlib.crc32(repr(sorted(files().items())).encode()):08x}"


def drop(connection: psycopg.Connection, where: str) -> None:
    """Drop the code, so that the tables under it can be changed; inside the caller's transaction.

    Workers lose their agents first, so that what older code writes after the commit is refused.
    """
    _prepare(connection)
    if stored := _stored(connection):
        connection.execute(statement("code.free_all_agents"))
        _drop(connection, set(stored), where)
        connection.execute(statement("code.clear_release"))


def bring_up_to_date(connection: psycopg.Connection, where: str) -> None:
    """Replace the objects of every file whose text differs from the database's, in the caller's transaction."""
    _prepare(connection)
    stored = {file: digest for file, (digest, _) in _stored(connection).items()}
    wanted = {name: _sha256(text) for name, text in files().items()}
    changed = {name for name in stored.keys() | wanted.keys() if stored.get(name) != wanted.get(name)}
    if changed:
        if stored:
            connection.execute(statement("code.free_all_agents"))
        dropped = _drop(connection, changed | {_GRANTS}, where)
        _create(connection, [name for name in files() if name in changed | dropped | {_GRANTS}])
    connection.execute(statement("code.set_release"), {"version": agentmesh.__version__, "code": digest()})


def differences(connection: psycopg.Connection) -> list[str]:
    """Return which functions and views differ from this program's files: missing, different or unexpected.

    Each is compared with a temporary copy that PostgreSQL makes from the file, so arguments, settings and options are
    compared too. A role that may not make temporary objects learns only what is missing or unexpected.
    """
    copied = {label: create for text in files().values() for label, create in _copies(text)}
    with connection.transaction(force_rollback=True):
        _prepare(connection)
        ours = {each for _, objects in _stored(connection).values() for each in objects}
        _make(connection, copied.values())
        rows = connection.execute(statement("code.definitions")).fetchall()
    found = {label: definition for each, label, definition in rows if each in ours}
    wanted = {label: definition for each, label, definition in rows if each is None}
    return [
        *(f"{label} is missing" for label in sorted(copied.keys() - found.keys())),
        *(f"{label} differs" for label in sorted(found) if wanted and wanted.get(label) != found[label]),
        *(f"{each} is unexpected" for each in sorted(each for each, _, _ in rows if each and each not in ours)),
    ]


def _copies(text: str) -> Iterator[tuple[str, str]]:
    """Yield each function and view of a file as ``differences`` names it, with the statement that makes a copy."""
    for name, rest in _FUNCTION.findall(text):
        yield f"function {name}", f"create function pg_temp.{name}{rest}"
    for name, rest in _VIEW.findall(text):
        yield f"view agentmesh.{name}", f"create temporary view {name}{rest}"


def _make(connection: psycopg.Connection, copies: Iterable[str]) -> None:
    """Make temporary copies, if this role may; leave out a copy that needs something missing."""
    connection.execute("select set_config('check_function_bodies', 'off', true)")
    for create in copies:
        try:
            with connection.transaction():
                connection.execute(create.encode())
        except (pg.InsufficientPrivilege, pg.ReadOnlySqlTransaction):
            return
        except pg.ProgrammingError:
            continue


def _prepare(connection: psycopg.Connection) -> None:
    connection.execute("select set_config('search_path', 'pg_catalog', true)")


def _stored(connection: psycopg.Connection) -> dict[str, tuple[str, list[str]]]:
    """Return the digest of each file in the database and the objects that it made; empty without the baseline."""
    if connection.execute("select to_regclass('agentmesh.code') is not null").fetchone() != (True,):
        return {}
    return {file: (digest, objects) for file, digest, objects in connection.execute(statement("code.stored"))}


def _drop(connection: psycopg.Connection, names: set[str], where: str) -> set[str]:
    """Drop the objects of these files, and of the files whose objects depend on them; return the files."""
    stored = _stored(connection)
    file_of = {each: file for file, (_, objects) in stored.items() for each in objects}
    edges = connection.execute(statement("code.dependencies")).fetchall()
    names = _with_dependents(names, file_of, edges)
    objects = {each for each, file in file_of.items() if file in names}
    order = TopologicalSorter({each: set() for each in objects})
    for needed, dependent in edges:
        if needed in objects and dependent in objects and needed != dependent:
            order.add(needed, dependent)
    for each in order.static_order():
        try:
            kind, _, name = each.partition(" ")
            connection.execute(f"drop {kind} if exists {name}".encode())  # somebody may have dropped it
        except pg.DependentObjectsStillExist as error:
            what = (error.diag.message_detail or str(error)).splitlines()[0]
            raise SchemaDiffers(
                f"The database {where} cannot be upgraded: {what}.",
                hint="Drop what depends on agentmesh's views and functions, upgrade, and make it again.",
            ) from error
    connection.execute(statement("code.forget"), {"files": list(names)})
    return names


def _with_dependents(names: set[str], file_of: Mapping[str, str], edges: Iterable[tuple[str, str]]) -> set[str]:
    """Return these files and all files whose objects depend on theirs, directly or through others."""
    found = set(names)
    while more := {
        file_of[dependent]
        for needed, dependent in edges
        if file_of.get(needed) in found and dependent in file_of and file_of[dependent] not in found
    }:
        found |= more
    return found


def _create(connection: psycopg.Connection, names: Iterable[str]) -> None:
    # Bodies are checked at the end: a function may name one that is created after it.
    connection.execute("select set_config('check_function_bodies', 'off', true)")
    known = {name for (name,) in connection.execute(statement("code.objects"))}
    for file in names:
        text = files()[file]
        connection.execute(text.encode())
        now = {name for (name,) in connection.execute(statement("code.objects"))}
        values = {"file": file, "digest": _sha256(text), "objects": sorted(now - known)}
        connection.execute(statement("code.keep"), values)
        known = now
    connection.execute("select set_config('check_function_bodies', 'on', true)")
    connection.execute(statement("code.check_bodies"))


def _sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()
