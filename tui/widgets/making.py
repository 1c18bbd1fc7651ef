"""Which widget shows which entry."""

from __future__ import annotations

from tui.entries import TASK, Answer, Call, Entry, Inherited, Note, Said, Summary
from tui.widgets.answer import AnswerView
from tui.widgets.call import CallView
from tui.widgets.entry import EntryView
from tui.widgets.inherited import InheritedView
from tui.widgets.note import NoteView
from tui.widgets.said import SaidView
from tui.widgets.summary import SummaryView
from tui.widgets.task import TaskView


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
