"""A text field of a dialog. Enter submits; the keys for a new line and for the editor are the same as in the input."""

from __future__ import annotations

import os

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widgets import TextArea

from agentmesh.domain.text import printable
from agentmesh.tui.input import editor
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.widgets.message import message

_USED = ("prompt.submit", "prompt.newline", "prompt.editor")


class Field(TextArea):
    """Several lines of text; the dialog knows their meaning."""

    @message
    class Entered(Message):
        """The text was submitted."""

        text: str

    @message
    class EditorFailed(Message):
        """Why the editor could not be used."""

        text: str

    def __init__(self, keymap: Keymap) -> None:
        super().__init__(soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        keys = [key for key in keymap.bindings("prompt") if key.id in _USED]
        self._does = {name: key.id for key in keys for name in key.keys.split(",")}
        self._editing = {
            key: binding.action
            for binding in TextArea.BINDINGS
            if isinstance(binding, Binding)
            for key in binding.key.split(",")
        }
        """The text area's own actions by key: Textual would handle its bindings after later keys."""

    def put(self, text: str) -> None:
        """Replace the text, the cursor at its end."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    async def _on_key(self, event: events.Key) -> None:
        """Do what the keys are bound to, in the order in which they come."""
        match self._does.get(event.key):
            case "prompt.submit":
                self.post_message(self.Entered(self.text))
            case "prompt.newline":
                self.insert("\n")
            case "prompt.editor":
                self._edit()
            case _ if event.key in self._editing:
                await self.run_action(self._editing[event.key])
            case _:
                return  # the text area's own handler comes next
        event.stop()
        event.prevent_default()

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert a paste whole, with nothing in it that a terminal would obey."""
        event.prevent_default()
        event.stop()
        self.insert(printable(event.text.replace("\r\n", "\n").replace("\r", "\n")))

    def _edit(self) -> None:
        try:
            self.put(printable(editor.outside(self.app, lambda: editor.edit(self.text, os.environ))))
        except editor.EditorFailed as error:
            self.post_message(self.EditorFailed(str(error)))
