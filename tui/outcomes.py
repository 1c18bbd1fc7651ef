"""What came of a call, shown: a word in the last line, a page, or something to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.calls import Call, Done
from tui.widgets.composer import Composer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmesh.domain.ids import AgentId
    from agentmesh.store.travel import Point
    from tui.app import MeshApp

_LINE = 240
"""Characters that the last line may say."""


def show(app: MeshApp, call: Call, agent_id: AgentId, done: Done) -> None:
    """Show what a call came to. Pages are imported when they open."""
    _say(app, call, done.text)
    if call.typed and done == Done():
        app.main.show_newest(agent_id)  # rows tell, and perhaps the person is far above them
    if done.table:
        from tui.screens.table import Table

        app.push_screen(Table(" ".join(call.args) or f"/{call.name}", done.table))
    if done.timeline:
        from tui.screens.timeline import TimelinePage

        app.push_screen(TimelinePage(done.timeline))
    if done.hits:
        from tui.screens.found import hit_chooser

        app.push_screen(hit_chooser(done.hits), app.main.show_hit)
    if done.points:
        _pick_point(app, done.points, agent_id)


def _pick_point(app: MeshApp, points: Sequence[Point], agent_id: AgentId) -> None:
    """Let a person pick where a fork begins, and make it."""
    from tui.screens.found import point_chooser

    def picked(row: int | None) -> None:
        if row is not None:
            app.post_message(Composer.Asked(Call("fork", (f"@{row}",), f"/fork @{row}"), agent_id))

    app.push_screen(point_chooser(points), picked)


def _say(app: MeshApp, call: Call, text: str) -> None:
    """Say it in the last line, or on a page of its own what has no room there."""
    if "\n" in text or len(text) > _LINE:
        from tui.screens.page import Page

        app.push_screen(Page(f"/{call.name}", text))
    elif text:
        app.main.tell_done(call, text)
