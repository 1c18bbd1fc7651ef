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

    from agentmesh.domain.rows import Session
    from agentmesh.store.tx import Database
    from agentmesh.tui.input.quiet import QuietInput


async def choose_session(
    app: App[None], database: Database, quiet: QuietInput, shown: SessionId, asked_at: float | None
) -> Session | None:
    """Return the session that a person chooses; None if it is the shown one or none. Only a worker may wait for it."""
    known = await asyncio.to_thread(database.run, sessions.list_sessions)
    may_open = asyncio.Event()
    quiet.open(may_open.set, "/sessions", asked_at)
    await may_open.wait()
    chosen = await app.push_screen_wait(session_chooser(known, shown))
    if chosen is None or chosen == shown:
        return None
    return await asyncio.to_thread(database.run, sessions.get, chosen)


def session_chooser(known: Iterable[SessionSummary], shown: SessionId) -> Chooser[SessionId]:
    """Return the list of sessions, the shown one highlighted."""
    return Chooser("Sessions", [_choice(session) for session in known], highlighted=shown)


def _choice(session: SessionSummary) -> Choice[SessionId]:
    name = one_line(session.title, 30) or str(session.id)[:8]
    facts = [
        f"{session.active_at:%Y-%m-%d %H:%M}",
        plural(session.agents, "agent"),
        f"{session.running} running",
        money(session.cost_usd),
        one_line(session.workdir, 60),
    ]
    return Choice(session.id, name, Content(""), " · ".join(facts))
