"""What agentmesh tells a model about its last answer, in the conversation: not as words of the person."""

from __future__ import annotations

from uuid import uuid4

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.tui.conversation.entries import ChatMessage, entries_of


@pytest.mark.parametrize("text", ["Call the tool now.", "[@click=app.exit]press[/] \x1b[31mred"])
def test_a_correction_is_not_shown_as_the_persons(text: str):
    (entry,) = entries_of(Row(AgentId(uuid4()), 3, Kind.USER, {"text": text, "correction": "call"}))
    assert isinstance(entry, ChatMessage)
    assert (entry.who, entry.by_user, entry.note) == ("agentmesh", False, "about its last answer")
    assert "\x1b" not in entry.text
