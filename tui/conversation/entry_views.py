"""Which widget shows which entry."""

from __future__ import annotations

from agentmesh.tui.conversation.chat_message import SaidView
from agentmesh.tui.conversation.entries import TASK, Answer, Call, Entry, Inherited, Note, Said, Summary
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.conversation.inherited import InheritedView
from agentmesh.tui.conversation.model_message import AnswerView
from agentmesh.tui.conversation.note import NoteView
from agentmesh.tui.conversation.summary import SummaryView
from agentmesh.tui.conversation.task_call import TaskView
from agentmesh.tui.conversation.tool_call import CallView


def view_of(entry: Entry) -> EntryView:
    """Return a new widget for an entry."""
    match entry:
        case Said():
            return SaidView(entry)
        case Answer():
            return AnswerView(entry)
        case Call():
            return TaskView(entry) if entry.name == TASK else CallView(entry)
        case Note():
            return NoteView(entry)
        case Inherited():
            return InheritedView(entry)
        case Summary():
            return SummaryView(entry)
