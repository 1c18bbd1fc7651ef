"""Which widget shows which entry."""

from __future__ import annotations

from agentmesh.tui.entries import TASK, Answer, Call, Entry, Inherited, Note, Said, Summary
from agentmesh.tui.widgets.answer import AnswerView
from agentmesh.tui.widgets.call import CallView
from agentmesh.tui.widgets.entry import EntryView
from agentmesh.tui.widgets.inherited import InheritedView
from agentmesh.tui.widgets.note import NoteView
from agentmesh.tui.widgets.said import SaidView
from agentmesh.tui.widgets.summary import SummaryView
from agentmesh.tui.widgets.task import TaskView


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
