"""Conversations that are no longer kept do not stay in memory, however one goes from one to the next."""

from __future__ import annotations

import gc
import weakref

import pytest
from textual.widget import Widget

from agentmesh.tui.conversation.memory import QUIET, DroppedConversations
from agentmesh.tui.conversation.scrollback import Scrollback
from agentmesh.tui.conversation.views import LIVE
from tests.tui.faces import face
from tests.tui.piloting import Show, puppet, said

MANY = 12


def test_nothing_is_thrown_away_while_somebody_types():
    dropped = DroppedConversations()
    dropped.add()
    assert not dropped.is_due(QUIET / 2)
    assert dropped.is_due(QUIET)


def test_who_never_pauses_leaves_no_more_than_so_many_behind():
    dropped = DroppedConversations()
    for _ in range(MANY - 1):
        dropped.add()
    assert not dropped.is_due(0)
    dropped.add()
    assert dropped.is_due(0)


def test_nothing_is_looked_for_where_nothing_was_left():
    dropped = DroppedConversations()
    assert not dropped.is_due(QUIET)
    dropped.add()
    dropped.collect()
    assert not dropped.is_due(QUIET)


@pytest.fixture
def no_collections():
    """Let nothing but the program itself look for garbage."""
    gc.disable()
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()


def test_a_tour_of_many_agents_frees_what_it_has_left(no_collections):
    seen: list[weakref.ref[Scrollback]] = []

    async def scene(show: Show) -> None:
        gc.disable()
        gc.set_threshold(0)
        await show.board(*(face(f"a{number}") for number in range(MANY + 5)))
        await show.press("ctrl+down")
        for _ in range(MANY + 4):
            current = show.app.main.views.current
            assert current is not None
            seen.append(weakref.ref(current))
            del current
            await show.press("ctrl+left")
        await show.until(lambda: seen[0]() is None)

    puppet(scene)


def test_the_drawn_lines_of_what_was_left_are_freed():
    async def scene(show: Show) -> None:
        await show.board(*(face(f"a{number}") for number in range(LIVE + 1)))
        await show.rows(said(1, "some words"))
        await show.sees("some words")
        current = show.app.main.views.current
        assert current is not None
        drawn = [weakref.ref(widget._styles_cache) for widget in current.walk_children(Widget)]
        del current
        await show.press("ctrl+down", *["ctrl+left"] * LIVE)
        await show.until(lambda: gc.collect() >= 0 and not any(lines() for lines in drawn))

    puppet(scene)
