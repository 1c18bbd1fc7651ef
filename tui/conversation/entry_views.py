"""Makes the widget of an entry."""

from __future__ import annotations

from agentmesh.tui.conversation.chat_message import ChatMessageView
from agentmesh.tui.conversation.entries import (
    TASK,
    ChatMessage,
    Entry,
    Inherited,
    ModelMessage,
    Note,
    Summary,
    ToolCall,
)
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.inherited import InheritedView
from agentmesh.tui.conversation.model_message import ModelMessageView
from agentmesh.tui.conversation.note import NoteView
from agentmesh.tui.conversation.summary import SummaryView
from agentmesh.tui.conversation.task_call import TaskCallView
from agentmesh.tui.conversation.tool_call import ToolCallView


def view_of(entry: Entry) -> EntryView:
    """Return a new widget for an entry."""
    match entry:
        case ChatMessage():
            return ChatMessageView(entry)
        case ModelMessage():
            return ModelMessageView(entry)
        case ToolCall():
            return TaskCallView(entry) if entry.name == TASK else ToolCallView(entry)
        case Note():
            return NoteView(entry)
        case Inherited():
            return InheritedView(entry)
        case Summary():
            return SummaryView(entry)
