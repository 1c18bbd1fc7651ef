"""The dialog that chooses a session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from agentmesh.domain.figures import money, plural
from agentmesh.domain.ids import SessionId
from agentmesh.domain.rows import SessionSummary
from agentmesh.domain.text import one_line
from agentmesh.store import sessions
from agentmesh.tui.widgets.chooser import Choice, Chooser

if TYPE_CHECKING:
    from textual.app import App

    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.domain.rows import Session
    from agentmesh.tui.input.quiet_input import QuietInput


async def choose_session(
    app: App[None],
    opened: tuple[Mesh, Databases | None],
    quiet: QuietInput,
    shown: SessionId,
    asked_at: float | None,
) -> tuple[Session, Mesh] | None:
    """Return the session that a person chooses, and its mesh; None if it is the shown one or none.

    ``opened``: the mesh in view, and all databases if there are several. Only a worker may wait for it.
    """
    listed, missing = await asyncio.to_thread(_listed, *opened)
    may_open = asyncio.Event()
    quiet.open(may_open.set, "/sessions", asked_at)
    await may_open.wait()
    title = f"Sessions, without {missing}" if missing else "Sessions"
    wanted: list[str] = []
    while True:
        beyond = wanted.append if _is_cut(listed) else None
        known = [(session, name) for session, _, name in listed]
        chosen = await app.push_screen_wait(session_chooser(known, shown, title, beyond))
        if not wanted:
            break
        asked = wanted.pop()
        found, missing = await asyncio.to_thread(_listed, *opened, asked)
        without = f", without {missing}" if missing else ""
        title = (
            f"Sessions with “{one_line(asked, 40)}”{without}"
            if found
            else f"No session fits “{one_line(asked, 40)}”{without}"
        )
        listed = found or listed
    if chosen is None or chosen == shown:
        return None
    mesh = next(mesh for session, mesh, _ in listed if session.id == chosen)
    return await asyncio.to_thread(mesh.database.run, sessions.get, chosen), mesh


def _listed(
    mesh: Mesh, databases: Databases | None, wanted: str = ""
) -> tuple[list[tuple[SessionSummary, Mesh, str]], str]:
    """Return the newest sessions that fit, of all databases, each with its mesh and database, and missing databases."""

    def of(mesh: Mesh) -> list[SessionSummary]:
        return mesh.database.run(sessions.list_sessions, limit=sessions.LISTED, wanted=wanted)

    if databases is None:
        return [(one, mesh, "") for one in of(mesh)], ""
    answers = databases.ask(lambda mesh: (mesh, of(mesh)))
    listed = [(one, mesh, name) for name, (mesh, some) in answers.some().items() for one in some]
    return sorted(listed, key=lambda each: each[0].created_at, reverse=True), ", ".join(answers.missing)


def _is_cut(listed: Sequence[tuple[SessionSummary, Mesh, str]]) -> bool:
    """Return whether a database may have more sessions than it was asked for."""
    return any(count >= sessions.LISTED for count in Counter(name for _, _, name in listed).values())


def session_chooser(
    known: Iterable[tuple[SessionSummary, str]],
    shown: SessionId,
    title: str = "Sessions",
    beyond: Callable[[str], None] | None = None,
) -> Chooser[SessionId]:
    """Return the list of sessions with their databases, the shown one highlighted; ``beyond`` if it is not of all.

    Then only those are listed that have every typed word. The others are looked for with that.
    """
    choices = [_choice(session, database) for session, database in known]
    if beyond is not None:
        title += f" · the newest {len(choices)}"
    return Chooser(title, choices, highlighted=shown, beyond=beyond, is_ordered=beyond is not None)


def _choice(session: SessionSummary, database: str) -> Choice[SessionId]:
    name = one_line(session.title, 30) or str(session.id)[:8]
    facts = [
        *([database] if database else []),
        f"{session.active_at.astimezone():%Y-%m-%d %H:%M}",
        plural(session.agents, "agent"),
        f"{session.running} running",
        money(session.cost_usd),
        one_line(session.workdir, 60),
    ]
    return Choice(session.id, name, Content(""), " · ".join(facts))
