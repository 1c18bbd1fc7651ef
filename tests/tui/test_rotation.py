from __future__ import annotations

import pytest

from agentmesh.tui.board.rotation import neighbours, rotate, settle
from tests.tui.faces import NOW, board, face, id_of


def names(near):
    return tuple(one and one.name for one in (near.parent, near.previous, near.next, near.child)), near.children


@pytest.fixture
def family():
    return board(face("a"), face("b", status="dead"), face("c"), face("b1", "b"), face("b2", "b"))


def test_neighbours_are_parent_siblings_and_newest_child(family):
    assert names(neighbours(family, id_of("b"))) == (("root", "a", "c", "b2"), 2)
    assert names(neighbours(family, id_of("root"))) == ((None, None, None, "c"), 3)


def test_siblings_wrap_round_in_the_order_of_creation_the_dead_among_them(family):
    walk = [id_of("a")]
    for _ in range(3):
        walk.append(rotate(family, walk[-1], "next"))
    assert walk == [id_of(name) for name in ("a", "b", "c", "a")]
    assert rotate(family, id_of("a"), "previous") == id_of("c")


def test_two_siblings_are_each_others_previous_and_next(family):
    assert names(neighbours(family, id_of("b1")))[0] == ("b", "b2", "b2", None)


@pytest.mark.parametrize("direction", ["previous", "next", "parent"])
def test_where_a_key_leads_nowhere_the_view_stays(family, direction):
    assert rotate(family, id_of("root"), direction) == id_of("root")


def test_an_agent_that_is_not_there_has_no_neighbours(family):
    assert names(neighbours(family, id_of("x"))) == ((None, None, None, None), 0)
    assert rotate(family, id_of("x"), "next") == id_of("x")


def test_the_view_leaves_only_the_reaped_for_the_first_living_agent():
    seen = board(
        face("root", None, "dead"), face("a", status="dead"), face("b", status="dead", reaped_at=NOW), face("c")
    )
    assert settle(seen, id_of("a")) == id_of("a")
    assert settle(seen, id_of("b")) == id_of("c")


def test_with_nobody_alive_the_view_is_the_root():
    seen = board(face("root", None, "dead"), face("b", status="dead", reaped_at=NOW))
    assert settle(seen, id_of("b")) == id_of("root")
