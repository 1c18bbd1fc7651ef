"""Messages about commands: a person asks for one, and later it has been carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.commands.calls import Call, Done, Failed


@message
class CallRequested(Message):
    """A person asked for something."""

    call: Call
    agent_id: AgentId
    """The agent that was in view then: when this is handled, another one may be."""
    is_confirmed: bool = False
    """Whether the person has been asked already if this is really wanted."""


@message
class ActionDone(Message):
    """A command has been carried out, or refused. Posted from a thread of the command runner."""

    call: Call
    agent_id: AgentId
    """The agent that was in view when the command was asked for."""
    outcome: Done | Failed
