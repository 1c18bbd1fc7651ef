"""The dialog that chooses a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
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
    chosen = await app.push_screen_wait(session_chooser([(session, name) for session, _, name in listed], shown, title))
    if chosen is None or chosen == shown:
        return None
    mesh = next(mesh for session, mesh, _ in listed if session.id == chosen)
    return await asyncio.to_thread(mesh.database.run, sessions.get, chosen), mesh


def _listed(mesh: Mesh, databases: Databases | None) -> tuple[list[tuple[SessionSummary, Mesh, str]], str]:
    """Return the newest sessions of all databases, each with its mesh and database, and the missing databases."""
    if databases is None:
        return [(one, mesh, "") for one in mesh.database.run(sessions.list_sessions)], ""
    answers = databases.ask(lambda mesh: (mesh, mesh.database.run(sessions.list_sessions)))
    listed = [(one, mesh, name) for name, (mesh, some) in answers.some().items() for one in some]
    return sorted(listed, key=lambda each: each[0].created_at, reverse=True), ", ".join(answers.missing)


def session_chooser(
    known: Iterable[tuple[SessionSummary, str]], shown: SessionId, title: str = "Sessions"
) -> Chooser[SessionId]:
    """Return the list of sessions with their databases, the shown one highlighted."""
    return Chooser(title, [_choice(session, database) for session, database in known], highlighted=shown)


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
