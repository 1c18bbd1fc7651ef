"""The dialog that chooses a session."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content

from agentmesh.domain.ids import SessionId
from agentmesh.domain.rows import SessionSummary
from agentmesh.domain.text import one_line
from agentmesh.tui.widgets.chooser import Choice, Chooser
from agentmesh.tui.widgets.formats import money, plural


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
