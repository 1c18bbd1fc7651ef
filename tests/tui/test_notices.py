from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agentmesh.domain.states import Kind
from agentmesh.tui.session.notices import notices
from tests.tui.faces import board, face


def told(before, now):
    return [(notice.text, notice.severity) for notice in notices(board(*before), board(*now))]


@pytest.mark.parametrize(
    ("ended", "text", "severity"),
    [
        (Kind.ASSISTANT, "a finished", "information"),
        (Kind.ERROR, "a failed", "error"),
        (Kind.EVENT, "a was interrupted", "information"),
    ],
)
def test_the_end_of_a_turn_is_told_by_how_it_ended(ended, text, severity):
    assert told([face("a", status="running")], [face("a", ended_with=ended)]) == [(text, severity)]


def test_a_held_agent_waits_for_a_word():
    before, now = face("a", status="running"), face("a", activity="holding mail", ended_with=Kind.ASSISTANT)
    assert [text for text, _ in told([before], [now])] == [
        "a finished",
        "a has mail that it will not read before you write to it",
    ]


def test_a_subtree_that_dies_is_one_notice():
    before = [face("a"), face("b", "a"), face("c", "b"), face("d")]
    now = [face("a", status="dead"), face("b", "a", "dead"), face("c", "b", "dead"), face("d", status="dead")]
    assert told(before, now) == [("a was killed with 2 below it", "warning"), ("d was killed", "warning")]


def test_what_did_not_change_and_who_is_new_is_not_told():
    assert told([face("a")], [face("a"), face("b", status="running")]) == []
    assert told([face("a", status="dead")], [face("a", status="dead", activity="x")]) == []


@pytest.mark.parametrize(
    ("used", "caps", "words"),
    [
        ({"tree_tokens": 81}, {"max_tokens": 100}, "of 100 tokens"),
        ({"tree_cost_usd": Decimal(9)}, {"max_cost_usd": Decimal(10)}, "of $10.00"),
    ],
)
def test_a_budget_that_is_nearly_used_is_told_once_whoever_is_in_view(used, caps, words):
    before, now = board(face("root", None), **caps), board(face("root", None, **used), **caps)
    (notice,) = notices(before, now)
    assert (notice.agent_id, notice.severity) == (None, "warning")
    assert f"more than 80 % of the session's budget {words} are used: /budget AMOUNT" in notice.text
    assert notices(now, board(face("root", None, **used, tool_calls=1), **caps)) == []
    assert notices(before, board(face("root", None, **used))) == []


def test_a_cap_in_money_says_once_that_it_does_not_count_all():
    caps: dict[str, Any] = {"max_cost_usd": Decimal(10)}
    now = board(face("root", None, tree_cost_usd=None), **caps)
    (notice,) = notices(board(face("root", None), **caps), now)
    assert notice.text == "no price is known for demo/demo: the cap of $10.00 counts known cost only"
    assert notices(now, now) == []
