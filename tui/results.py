"""What came of a call, shown: a word in the last line, a page, or something to choose from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agentmesh.tui.commands.calls import Call, Done
from agentmesh.tui.input.composer import Composer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentmesh.domain.ids import AgentId
    from agentmesh.store.travel import Point
    from agentmesh.tui.app import MeshApp

_LINE = 240
"""Characters that the last line may say."""


def show(app: MeshApp, call: Call, agent_id: AgentId, done: Done) -> None:
    """Show what a call came to. Pages are imported when they open; they wait for who does something else meanwhile."""
    if done.text and not _is_long(done.text):
        app.main.tell_done(call, done.text)
    if call.typed and done == Done():
        app.main.show_newest(call, agent_id)  # rows tell, and perhaps the person is far above them
    if page := _page(app, call, agent_id, done):
        app.main.open(page, f"/{call.name}", app.main.pending_calls.since(call, agent_id))


def _page(app: MeshApp, call: Call, agent_id: AgentId, done: Done) -> Callable[[], object] | None:
    """Return what opens the page or the choice that a call came to, None when there is none."""
    if done.table:
        from agentmesh.tui.board.table import Table

        return partial(app.push_screen, Table(" ".join(call.args) or f"/{call.name}", done.table))
    if done.timeline:
        from agentmesh.tui.board.timeline import TimelinePage

        return partial(app.push_screen, TimelinePage(done.timeline))
    if done.hits:
        from agentmesh.tui.board.row_choosers import hit_chooser

        return partial(app.push_screen, hit_chooser(done.hits), app.main.show_hit)
    if done.points:
        return partial(_pick_point, app, done.points, agent_id)
    if _is_long(done.text):
        from agentmesh.tui.widgets.page import Page

        return partial(app.push_screen, Page(f"/{call.name}", done.text))
    return None


def _pick_point(app: MeshApp, points: Sequence[Point], agent_id: AgentId) -> None:
    """Let a person pick where a fork begins, and make it."""
    from agentmesh.tui.board.row_choosers import point_chooser

    def picked(row: int | None) -> None:
        if row is not None:
            app.post_message(Composer.Asked(Call("fork", (f"@{row}",), f"/fork @{row}"), agent_id))

    app.push_screen(point_chooser(points), picked)


def _is_long(text: str) -> bool:
    """Whether a text needs a page of its own: the last line has no room for it."""
    return "\n" in text or len(text) > _LINE
