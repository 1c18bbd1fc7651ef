"""Requests: approvals and questions that wait for a person, and the rules that the answers leave behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from agentmesh.domain.errors import UnknownRequest
from agentmesh.domain.ids import SessionId, beginning_with
from agentmesh.domain.rows import Request
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store.call import scalar, typed_row
from agentmesh.store.jsonb import jsonb


def pending(conn: Connection, session: SessionId) -> list[Request]:
    """Return the requests of a session that wait for a person, oldest first."""
    with conn.cursor(row_factory=typed_row(Request)) as cursor:
        return cursor.execute(statement("requests.pending"), {"session": session}).fetchall()


def everywhere(conn: Connection) -> list[Request]:
    """Return the requests of all sessions that wait for a person, oldest first."""
    with conn.cursor(row_factory=typed_row(Request)) as cursor:
        return cursor.execute(statement("requests.everywhere")).fetchall()


def resolve(conn: Connection, who: str) -> Request:
    """Return the request whose id is this or begins with it (4 characters or more); raise UnknownRequest."""
    found: list[Request] = []
    if between := beginning_with(who):
        with conn.cursor(row_factory=typed_row(Request)) as cursor:
            found = cursor.execute(statement("requests.matches"), {"first": between[0], "last": between[1]}).fetchall()
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(str(request.id) for request in found[:5])
        raise UnknownRequest(f"{who!r} fits more than one request", hint=f"Give more of the id: {ids}.")
    raise UnknownRequest(f"there is no request {who!r}", hint="agentmesh answer, without arguments, lists what waits.")


def answer(conn: Connection, request: UUID, words: Mapping[str, Any], by: str) -> None:
    """Answer a request: ``{"decision": "once" | "always" | "no", "reason"?, "arguments"?}`` or ``{"text"}``.

    ``by`` names the person who answers. Raise RequestOver, UnknownRequest or BadAnswer.
    """
    values = {"request": request, "answer": jsonb(dict(words)), "by": storable(by)}
    conn.execute(statement("requests.answer"), values)


def set_attended(conn: Connection, session: SessionId, attended: bool) -> None:
    """Record whether anybody can answer requests of a session; if nobody can, calls that would ask are refused."""
    conn.execute(statement("requests.set_attended"), {"session": session, "attended": attended})


def rules(conn: Connection, session: SessionId) -> list[dict[str, str]]:
    """Return the rules that "always" has made in a session."""
    return scalar(conn, statement("requests.rules"), {"session": session}, list)


def allow(conn: Connection, session: SessionId, rules: Sequence[Mapping[str, str]]) -> int:
    """Allow what these rules say for the whole session, as the answer "always" does; return how many are new.

    A rule turns asking into allowing; it never overrides a denial.
    """
    return scalar(conn, statement("requests.allow"), {"session": session, "rules": jsonb(list(rules))}, int)


def forget_rules(conn: Connection, session: SessionId, place: int | None = None) -> int:
    """Remove the rule at a place (from 1), or all rules; return how many were removed."""
    return scalar(conn, statement("requests.forget_rules"), {"session": session, "place": place}, int)
