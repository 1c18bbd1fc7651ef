"""News of agents out of view: the difference between two boards, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from agentmesh.domain.figures import count, money
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import Kind
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.widgets.formats import is_near

_HOLDING = "holding mail"


class Notice(NamedTuple):
    """One thing to tell."""

    agent_id: AgentId | None
    """The agent; None for the session, whose notices are shown whichever agent is in view."""
    text: str
    severity: Literal["information", "warning", "error"] = "information"


def notices(before: Board, now: Board) -> list[Notice]:
    """Return the news between two boards in the order of rotation, also of the agent in view."""
    found: list[Notice] = []
    for face in now.faces.values():
        was = before.get(face.id)
        if was is not None and was.view != face.view:
            found += _changes(was, face, before, now)
    found += _spending(before, now)
    return found


def _spending(before: Board, now: Board) -> Iterator[Notice]:
    """Yield a notice when 80 % of the session's budget are used, and when the cap in USD stops counting every cost."""
    root, session = now.root.view, now.session
    was = before.root.view
    if is_near(root.tree_tokens, session.max_tokens) and not is_near(was.tree_tokens, before.session.max_tokens):
        yield _nearly(f"{count(session.max_tokens or 0)} tokens")
    if is_near(root.tree_cost_usd, session.max_cost_usd) and not is_near(
        was.tree_cost_usd, before.session.max_cost_usd
    ):
        yield _nearly(money(session.max_cost_usd))
    if session.max_cost_usd is not None and root.tree_cost_usd is None and was.tree_cost_usd is not None:
        cap = money(session.max_cost_usd)
        yield Notice(None, f"no price is known for {root.model}: the cap of {cap} counts known cost only")


def _nearly(cap: str) -> Notice:
    text = f"more than 80 % of the session's budget of {cap} are used: /budget AMOUNT sets another"
    return Notice(None, text, "warning")


def _changes(was: AgentFace, face: AgentFace, before: Board, now: Board) -> Iterator[Notice]:
    if face.is_dead:
        if not was.is_dead and not _died_with_parent(face, before, now):
            others = sum(one.is_dead and not _was_dead(one, before) for one in now.subtree(face.id)) - 1
            more = f" with {others:,} below it" if others else ""
            yield Notice(face.id, f"{face.name} was killed{more}", "warning")
        return
    activity = face.view.activity
    if (
        was.is_running and not face.is_running and not face.view.clean and face.id not in now.silent
    ):  # a task's end shows in its parent's call
        yield _ended(face)
    if activity == _HOLDING and was.view.activity != _HOLDING:
        yield Notice(face.id, f"{face.name} has mail that it will not read before you write to it", "warning")


def _ended(face: AgentFace) -> Notice:
    if face.ended_with == Kind.ERROR:
        return Notice(face.id, f"{face.name} failed", "error")
    if face.ended_with == Kind.EVENT:
        return Notice(face.id, f"{face.name} was interrupted")
    return Notice(face.id, f"{face.name} finished")


def _was_dead(face: AgentFace, before: Board) -> bool:
    was = before.get(face.id)
    return was is not None and was.is_dead


def _died_with_parent(face: AgentFace, before: Board, now: Board) -> bool:
    parent = now.get(face.parent) if face.parent else None
    return parent is not None and parent.is_dead and not _was_dead(parent, before)
