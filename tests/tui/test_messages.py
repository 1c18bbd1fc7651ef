"""Messages with fields: made like dataclasses, without what those compile at every start."""

from __future__ import annotations

from typing import Any, cast

import pytest
from textual.message import Message

from agentmesh.tui.session.messages import TextStreamed
from agentmesh.tui.widgets.message import message


@message
class Told(Message):
    who: str
    what: str = "nothing"


def test_fields_are_given_by_place_or_by_name_and_may_have_a_default():
    one, other = Told("a"), Told(what="x", who="b")
    assert (one.who, one.what, other.who, other.what) == ("a", "nothing", "b", "x")


def test_each_is_a_message_of_its_own():
    one, other = Told("a"), Told("a")
    one.stop()
    assert one.time
    assert (one._stop_propagation, other._stop_propagation) == (True, False)
    assert one.handler_name == "on_told"


@pytest.mark.parametrize(("values", "named"), [((), {}), (("a", "b", "c"), {}), (("a",), {"whom": "b"})])
def test_what_does_not_fit_is_refused(values, named):
    with pytest.raises(TypeError, match="Told is made of who, what"):
        cast("Any", Told)(*values, **named)


def test_the_fields_of_one_kind_are_not_those_of_another():
    assert vars(TextStreamed(cast("Any", 1), "x")).keys() - vars(Told("a")).keys() == {"agent_id", "text", "anew"}
