"""Dialogs that choose a row: among hits of a search, or among places where a fork can begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from agentmesh.domain.ids import SessionId, short
from agentmesh.domain.states import Kind
from agentmesh.domain.text import one_line
from agentmesh.tui.widgets.chooser import Choice, Chooser

if TYPE_CHECKING:
    from agentmesh.store.search import Hit
    from agentmesh.store.travel import Point

_WIDTH = 300
"""Characters of a line; what has no room is cut."""


def hit_chooser(hits: Sequence[Hit], databases: Mapping[SessionId, str] | None = None) -> Chooser[Hit]:
    """Return the hits, the newest first; typing looks for letters in what stands around the words.

    ``databases``: if they are of all sessions, the database of each.
    """
    return Chooser(f"Found {len(hits):,}, the newest first", [_hit(hit, databases) for hit in hits])


def point_chooser(points: Sequence[Point], title: str) -> Chooser[int]:
    """Return the places of a conversation, the newest first; the value is the last row that stays, or is inherited."""
    return Chooser(title, [_point(point) for point in points])


def _hit(hit: Hit, databases: Mapping[SessionId, str] | None) -> Choice[Hit]:
    what = f"{hit.where} {hit.kind.replace('_', ' ')} "
    if databases is not None:
        database = databases[hit.session_id]
        what = f"{short(hit.session_id)}{f' in {database}' if database else ''} {what}"
    return Choice(hit, one_line(hit.snippet, _WIDTH), Content.assemble((what, "$dim")))


def _point(point: Point) -> Choice[int]:
    is_answer = point.kind == Kind.ASSISTANT
    where = f"after  row {point.seq:<4} " if is_answer else f"before row {point.seq:<4} "
    who = "answer" if is_answer else "you" if point.kind == Kind.USER else "mail"
    text = Content.assemble((where, "$dim"), (f"{who}: ", "$dim"))
    return Choice(point.upto, one_line(point.text, _WIDTH) or "(no words)", text)
