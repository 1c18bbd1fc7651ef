"""What the actions tell the app, from their threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.commands.calls import Call, Done, Failed


@message
class ActionDone(Message):
    """A command has been carried out, or refused."""

    call: Call
    agent_id: AgentId
    """Who was in view when it was asked for."""
    outcome: Done | Failed
