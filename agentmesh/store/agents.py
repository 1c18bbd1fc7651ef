"""Agents: fork, kill, interrupt and rename them, and find one by any of its names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, cast
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.errors import AmbiguousAgent, Refused, UnknownAgent
from agentmesh.domain.ids import AgentId, SessionId, beginning_with, short
from agentmesh.domain.rows import Agent, AgentView, Ref, ToolSettings
from agentmesh.domain.shape import SAME, Shape
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.domain.text import one_line, storable
from agentmesh.sql import statement
from agentmesh.store import tree_paths
from agentmesh.store.call import Lease, caller, scalar, typed_row
from agentmesh.store.jsonb import jsonb
from agentmesh.store.mailbox import require_size

_BY_PREFIX = 2


class Ending(NamedTuple):
    """The state of an agent and how its last turn ended."""

    id: AgentId
    name: str
    status: AgentStatus
    output: str = ""
    """The text that the last turn of an idle agent ended with."""
    error: str | None = None
    """Why the last turn of an idle agent failed; None if it ended well."""


def fork(
    conn: Connection,
    parent: AgentId,
    name: str,
    prompt: str | None = None,
    lease: Lease | None = None,
    *,
    workspace: str | None = None,
    base: str | None = None,
    shape: Shape = SAME,
    report: bool = False,
) -> AgentId:
    """Make a child that inherits the parent's conversation. With a prompt it runs from this commit on.

    With a lease, the prompt comes from the parent, and the tool's result is written too. Without one, the prompt comes
    from the user, unless the child is to ``report`` to its parent. ``workspace``: ``shared`` is the parent's, ``own`` a
    tree of its own, None the session's default. ``base`` is the tree that an own one begins with, if the caller took a
    snapshot of the parent's; otherwise it begins with what the parent's has when it is made. ``shape`` is what differs
    from the parent, and the form of its report.

    Raise a LimitReached, BadName, ReservedName, DeadAgent, UnknownAgent or NoTree if it is refused.
    """
    if prompt is not None:
        require_size(prompt)
        prompt = storable(prompt)
    values = {"parent": parent, "name": storable(name), "prompt": prompt, "workspace": workspace, "base": base}
    wanted = None if shape.tools is None else [storable(tool) for tool in shape.tools]
    model, context = (text and storable(text) for text in (shape.model, shape.context))
    values |= {"model": model, "tools": wanted, "context": context}
    schema = None if shape.schema is None else jsonb(shape.schema)
    check = None if shape.check is None else storable(shape.check)
    values |= {"schema": schema, "check": check, "check_approved": shape.check_approved}
    values |= {"type": None if shape.definition is None else jsonb(shape.definition), "report": report}
    values |= {"effort": shape.effort and storable(shape.effort), **caller(lease)}
    return AgentId(scalar(conn, statement("agents.fork"), values, UUID))


def fork_cache(conn: Connection, child: AgentId) -> str | None:
    """Return the cost of a fork's differences from its parent, in cached prefix; None if it has none."""
    row = conn.execute(statement("agents.fork_cache"), {"child": child}).fetchone()
    return row[0] if row else None


def kill(conn: Connection, target: AgentId, killed_by: AgentId | None = None, lease: Lease | None = None) -> list[Ref]:
    """End the target and all its descendants; return those that died, the target first (none if it was dead)."""
    with conn.cursor(row_factory=class_row(Ref)) as cursor:
        values = {"target": target, "killed_by": killed_by, **caller(lease)}
        return cursor.execute(statement("agents.kill"), values).fetchall()


def interrupt(
    conn: Connection, agent: AgentId, interrupted_by: AgentId | None = None, lease: Lease | None = None
) -> bool:
    """Stop an agent's turn, for a person or for an agent above it; return whether there was one."""
    values = {"agent": agent, "interrupted_by": interrupted_by, **caller(lease)}
    return scalar(conn, statement("agents.interrupt"), values, bool)


def background(conn: Connection, agent: AgentId) -> None:
    """Let the task of a sub-agent go on in the background: its result comes to its parent by mail.

    Raise NoSuchTask, DeadAgent or UnknownAgent if it is refused.
    """
    conn.execute(statement("agents.background"), {"agent": agent})


def rename(conn: Connection, agent: AgentId, name: str) -> str:
    """Give an agent another name; return the name as it is stored.

    Raise BadName, ReservedName, NameTaken, NameFixed, DeadAgent or UnknownAgent if it is refused.
    """
    return scalar(conn, statement("agents.rename"), {"agent": agent, "name": storable(name)}, str)


def get(conn: Connection, agent: AgentId) -> Agent:
    """Return the agent or raise UnknownAgent."""
    with conn.cursor(row_factory=typed_row(Agent)) as cursor:
        found = cursor.execute(statement("agents.by_id"), {"agent": agent}).fetchone()
    if found is None:
        raise UnknownAgent(f"there is no agent {agent}", hint="agentmesh ps --all lists the agents.")
    return found


def settings(conn: Connection, settings_id: str) -> ToolSettings:
    """Return the system prompt and the tools that an agent shares with its forks."""
    with conn.cursor(row_factory=class_row(ToolSettings)) as cursor:
        return cast(ToolSettings, cursor.execute(statement("agents.settings"), {"settings": settings_id}).fetchone())


def resolve(conn: Connection, session: SessionId, who: str, asker: AgentId | None = None) -> Ref:
    """Return the agent of the session with this full id, this exact name, or this prefix of its id if only one has it.

    They are tried in this order. A path such as ``root/reader/tester`` stands for the name at its end, and must be the
    agent's place in the tree. A prefix has at least 4 hex digits. If an agent asks, "parent" is its parent. Raise
    UnknownAgent or AmbiguousAgent with close matches.
    """
    (found,) = resolve_all(conn, session, [who], asker)
    if isinstance(found, Refused):
        raise found
    return found


def resolve_all(
    conn: Connection, session: SessionId, asked: Sequence[str], asker: AgentId | None
) -> list[Ref | Refused]:
    """Resolve several as ``resolve`` does, in one statement; return the error for each that cannot be resolved."""
    texts = [storable(who).strip() for who in asked]
    asked = [text.lower() for text in texts]
    bounds = [_prefixed(text) for text in asked]
    with conn.cursor(row_factory=dict_row) as cursor:
        values = {
            "session": session,
            "asker": asker,
            "asked": asked,
            "first": [first for first, _ in bounds],
            "last": [last for _, last in bounds],
        }
        matches = cursor.execute(statement("agents.matches"), values).fetchall()
    found: list[list[dict[str, Any]]] = [[] for _ in texts]
    for match in matches:
        found[match["n"] - 1].append(match)
    return [_chosen(conn, session, asker, text, rows) for text, rows in zip(texts, found, strict=True)]


def _prefixed(who: str) -> tuple[UUID | None, UUID | None]:
    """Return the least and the greatest id with this prefix, or None twice if no id can have it."""
    bounds = beginning_with(who)
    return bounds if bounds and str(bounds[0]).startswith(who) else (None, None)


def _chosen(
    conn: Connection, session: SessionId, asker: AgentId | None, who: str, found: list[dict[str, Any]]
) -> Ref | Refused:
    """Return the agent that was found by the best way of matching, or the reason why there is none."""
    if found and (found[0]["how"] != _BY_PREFIX or len(found) == 1):
        return Ref(found[0]["id"], found[0]["name"])
    if found:
        names = ", ".join(f"{row['name']} ({row['id']})" for row in found[:5])
        return AmbiguousAgent(f"{who!r} fits more than one agent", hint=f"Give more of the id: {names}.")
    if asker is not None and who.lower() == "parent":
        return UnknownAgent("the root has no parent", hint="End your turn with an answer: the user reads it.")
    if asker is not None and who.lower() == "user":
        return UnknownAgent("the user is no agent", hint="End your turn with what the user should read.")
    if "/" in who:
        lost = tree_paths.missing(conn, session, who.lower())
        hint = _renamed(conn, session, lost.part) or lost.hint or _close(conn, session, lost.part, asker)
        return UnknownAgent(lost.sentence, hint=hint)
    hint = _renamed(conn, session, who.lower()) or _close(conn, session, who.lower(), asker)
    return UnknownAgent(f"there is no agent {one_line(who, 60)!r} in this session", hint=hint)


def _renamed(conn: Connection, session: SessionId, who: str) -> str:
    """Return advice with the present name of the agent that once had this name, or "" if none had it."""
    with conn.cursor(row_factory=class_row(Ref)) as cursor:
        ref = cursor.execute(statement("agents.renamed"), {"session": session, "name": who}).fetchone()
    return f"{one_line(who, 60)} was renamed: it is {ref.name} ({short(ref.id)}) now." if ref else ""


def _close(conn: Connection, session: SessionId, who: str, asker: AgentId | None) -> str:
    """Return advice: the agents with the closest names, else some that live, or that the asker is the only one."""
    with conn.cursor(row_factory=dict_row) as cursor:
        known = cursor.execute(statement("agents.labels"), {"session": session}).fetchall()
    if not known:
        return "Its session was deleted, or is in another database: agentmesh sessions lists all."
    names = difflib.get_close_matches(who, [row["name"] for row in known], n=5, cutoff=0.5)
    if not names and [row["id"] for row in known] == [asker]:
        return "You are the only agent here. Do the work yourself, and end your turn with the result."
    close = sorted((row for name in names for row in known if row["name"] == name), key=itemgetter("dead"))
    chosen = close or [row for row in known if not row["dead"]][:5] or known[:5]
    labels = ", ".join(f"{row['name']} ({short(row['id'])}{', dead' if row['dead'] else ''})" for row in chosen)
    how = "Use the full id, the name, or 4 or more digits of the id."
    if close:
        return f"Close matches: {labels}. {how}"
    living = chosen[0]["living"]
    if living <= len(chosen):
        return f"Agents here: {labels}. {how}"
    lists = "agentmesh tree --all" if asker is None else "list_agents"
    return f"{len(chosen)} of the {living} agents here: {labels}. {lists} lists all. {how}"


def anywhere(conn: Connection, who: str) -> list[tuple[Ref, SessionId]]:
    """Return the agents of any session whose id is this or begins with it."""
    ids = beginning_with(who)
    if ids is None:
        return []
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("agents.anywhere"), {"first": ids[0], "last": ids[1]}).fetchall()
    return [(Ref(row["id"], row["name"]), row["session_id"]) for row in rows]


def view(conn: Connection, session: SessionId, limit: int | None = None) -> list[AgentView]:
    """Return the agents of a session, the dead and reaped too, as people see them, oldest first.

    At most ``limit``, if it is given.
    """
    with conn.cursor(row_factory=typed_row(AgentView)) as cursor:
        return cursor.execute(statement("agents.view"), {"session": session, "limit": limit}).fetchall()


def page(conn: Connection, session: SessionId, limit: int, dead: int = 0) -> list[AgentView]:
    """Return the oldest living agents, the newest dead ones that are not reaped, and their ancestors.

    At most ``limit`` living and ``dead`` dead ones, oldest first, without sums over trees. It takes as long in a
    session of 100,000 agents as in a small one.
    """
    with conn.cursor(row_factory=typed_row(AgentView)) as cursor:
        values = {"session": session, "limit": limit, "dead": dead}
        return cursor.execute(statement("agents.page"), values).fetchall()


def list_agents(conn: Connection, session: SessionId, agent: AgentId, limit: int) -> list[dict[str, Any]]:
    """Return living agents of a session in the shape of the tool's result, oldest first.

    At most ``limit``: the caller, its parent and its children before others.
    """
    with conn.cursor(row_factory=dict_row) as cursor:
        values = {"session": session, "agent": agent, "limit": limit}
        rows = cursor.execute(statement("agents.living"), values).fetchall()
    return [{"agent_id": str(row.pop("id")), **row} for row in rows]


def busy(conn: Connection, session: SessionId) -> int:
    """Return how many agents of the session are running, without external agents."""
    return scalar(conn, statement("agents.busy"), {"session": session}, int)


def ending(conn: Connection, agent: AgentId) -> tuple[Kind, Mapping[str, Any]] | None:
    """Return the kind and content of the row that the agent's last turn ended with; None before the first end."""
    with conn.cursor() as cursor:
        row = cursor.execute(statement("agents.output"), {"agent": agent}).fetchone()
    return (Kind(row[0]), row[1]) if row else None


def last_output(conn: Connection, agent: AgentId) -> tuple[str, str | None]:
    """Return the text that the agent's last turn ended with, and the error if it failed."""
    return _output(*(ending(conn, agent) or (None, {})))


def _output(kind: str | None, content: Mapping[str, Any]) -> tuple[str, str | None]:
    if kind is None:
        return "", None
    if kind == Kind.ASSISTANT:
        return str(content.get("text", "")), None
    return "", str(content.get("error") or content.get("text") or "failed")


def working(conn: Connection, listed: Sequence[AgentId], sessions: Collection[SessionId]) -> list[AgentId]:
    """Return which of the listed agents, and of the agents of these sessions that a worker runs, are running.

    At most a thousand are returned. Raise UnknownAgent if a listed agent does not exist.
    """
    values = {"listed": list(listed), "sessions": list(sessions)}
    found, running = cast("tuple[int, list[AgentId]]", conn.execute(statement("agents.working"), values).fetchone())
    if found < len(set(listed)):
        for agent in listed:
            get(conn, agent)
    return running


def endings(conn: Connection, listed: Sequence[AgentId], sessions: Collection[SessionId]) -> list[Ending]:
    """Return the state of the same agents, without the reaped; those of the sessions oldest first."""
    values = {"listed": list(listed), "sessions": list(sessions)}
    rows = conn.execute(statement("agents.endings"), values)
    return [
        Ending(AgentId(agent), name, AgentStatus(status), *_output(kind, content or {}))
        for agent, name, status, kind, content in rows
    ]
