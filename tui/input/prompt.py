"""The text area of the input: several lines, whole pastes, history at the edges, completion."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.binding import Binding
from textual.document._document import EditResult
from textual.document._edit import Edit
from textual.message import Message
from textual.widgets import OptionList, TextArea

from agentmesh.domain.text import printable
from agentmesh.tui.input.history import History
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.pastes import FoldedPastes, Span
from agentmesh.tui.widgets.message import message

if TYPE_CHECKING:
    from rich.text import Text

    from agentmesh.tui.commands.complete import Completion
    from agentmesh.tui.input.completion_list import CompletionList
    from agentmesh.tui.input.vim import VimKeys

_UNFOLDS = "folds.toggle"
"""The key that unfolds tool calls unfolds a long paste at the cursor first."""
_BY_WORD = {"rotate.previous": "cursor_word_left", "rotate.next": "cursor_word_right"}
"""These keys move by a word while there is text."""


class Prompt(TextArea):
    """Where a person types."""

    @message
    class Edited(Message):
        """The text changed."""

        text: str

    class ModeChanged(Message):
        """Vim's mode is another."""

    class NothingToComplete(Message):
        """Tab was pressed where nothing can be completed."""

    class EditorWanted(Message):
        """The text is to be edited in an editor."""

    def __init__(
        self,
        keymap: Keymap,
        history: History,
        complete: Callable[[str, int], Sequence[Completion]],
        submit: Callable[[str], bool],
    ) -> None:
        super().__init__(id="prompt", soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self._keys = {name: key for key in keymap.bindings("prompt") for name in key.keys.split(",")}
        self._screen_keys = {name: key for key in keymap.bindings("screen") for name in key.keys.split(",")}
        self._editing = {
            key: binding.action
            for binding in TextArea.BINDINGS
            if isinstance(binding, Binding)
            for key in binding.key.split(",")
        }
        """The text area's own actions by key: backspace, cursor keys and others."""
        self._history = history
        self._pastes = FoldedPastes()
        self._vim: VimKeys | None = None
        self._popup: CompletionList | None = None
        """Made and mounted at the first completion."""
        self._complete = complete
        self._submit = submit
        """Takes the text and returns True, or refuses it: then it stays."""
        self._was_moved = False
        """Whether the person moved in the list; only then Enter takes a completion."""
        self._shown_before: str | None = None
        """A text from history or a draft; no list opens for it."""
        self.before_key: Callable[[str], None] = lambda _key: None
        """Called with each key before it is done, and with nothing before a paste."""
        self.pressed_at = 0.0
        """When the last key was taken here; ``time.monotonic()``."""

    def use_vim(self) -> None:
        """Take Vim's keys, beginning in insert mode."""
        from agentmesh.tui.input.vim import VimKeys

        self._vim = VimKeys(self, self.action_history, self._mode_changed)

    def _mode_changed(self) -> None:
        self.post_message(self.ModeChanged())

    @property
    def is_normal(self) -> bool:
        """Whether the input is in Vim's normal mode."""
        return self._vim is not None and self._vim.is_normal

    @property
    def whole(self) -> str:
        """The text with all that was pasted; ``text`` has placeholders for long pastes."""
        return self.unfolded(self.text)

    def unfolded(self, text: str) -> str:
        """Return a text that was typed here with all that was pasted."""
        return self._pastes.whole(text)

    def folded(self, text: str) -> str:
        """Return a text with a placeholder for each long paste in it that is known."""
        return self._pastes.fold_again(text)

    @property
    def selected_text(self) -> str:
        """The selected text, pastes whole."""
        return self._pastes.whole(super().selected_text)

    def put_folded(self, text: str) -> None:
        """Replace the text by one that may have known long pastes in it."""
        self.put(self.folded(text))

    def put(self, text: str) -> None:
        """Replace the text, the cursor at its end; no completions pop up for it."""
        self._shown_before = text
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.close_completion()

    def close_completion(self) -> bool:
        """Hide the list; return whether it was open."""
        popup = self._open_popup
        if popup is not None:
            popup.show((), 0)
        self._was_moved = False
        return popup is not None

    # Keys

    async def _on_key(self, event: events.Key) -> None:
        """Do what a key is bound to, also the screen's keys, before the next key.

        Textual handles bindings elsewhere, out of order with other keys: an Enter would send half of the text.
        """
        self.before_key(event.key)
        self.pressed_at = time.monotonic()  # later than an Enter that came in the same moment
        if self._vim is not None and self._vim.take(event.key, event.character):
            self.close_completion()
            event.stop()
            event.prevent_default()
            return
        namespace, key = (
            (self, self._keys.get(event.key))
            if event.key in self._keys
            else (self.screen, self._screen_keys.get(event.key))
        )
        editing = self._editing.get(event.key)
        if key is None and editing is None:
            return
        event.stop()
        event.prevent_default()
        if key is None:
            await self.run_action(editing or "")
        elif key.id == _UNFOLDS and self.unfold_paste(self.cursor_location):
            return
        elif key.id in _BY_WORD and self.text:
            await self.run_action(_BY_WORD[key.id])
        else:
            await self.app.run_action(key.action, namespace)

    def action_submit(self) -> None:
        """Enter: take the completion that was moved to, else hand over the text.

        At once, without a message: keys typed next must neither be sent nor lost.
        """
        if self._was_moved and self._take():
            return
        self.close_completion()
        if self._submit(self.whole):
            self.put("")
            if self._vim is not None:
                self._vim.insert()

    def undo(self) -> None:
        """Undo. From the first line: Textual 8.2 fails if the cursor's line goes, before it moves the cursor."""
        self.move_cursor((0, 0))
        super().undo()

    def redo(self) -> None:
        """Redo, likewise."""
        self.move_cursor((0, 0))
        super().redo()

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_complete(self) -> None:
        """Take the highlighted completion, or open the list; with nothing to complete, say so."""
        if self._take():
            return
        self._open()
        if self._open_popup is None:
            self.post_message(self.NothingToComplete())
        elif len(self._complete(self.text, self._position)) == 1:
            self._take()

    def action_history(self, direction: str) -> None:
        """At the first or last line: an older or newer input; in an open list: move. Else the cursor moves."""
        if (popup := self._open_popup) is not None:
            popup.move(-1 if direction == "older" else 1)
            self._was_moved = True
            return
        at_edge = self.cursor_at_first_line if direction == "older" else self.cursor_at_last_line
        found = None
        if at_edge:
            found = self._history.older(self.whole) if direction == "older" else self._history.newer()
        if found is not None:
            self.put_folded(found)
        elif direction == "older":
            self.action_cursor_up()
        else:
            self.action_cursor_down()

    def action_search_history(self) -> None:
        """Let a person search the inputs of before; what is typed stays unless one is chosen."""
        from agentmesh.tui.input.history_search import history_search

        def chosen(text: str | None) -> None:
            if text is not None:
                self._history.add(self.whole)  # ↑ brings the draft back
                self.put_folded(text)

        self.app.push_screen(history_search(self._history), chosen)

    def action_edit_outside(self) -> None:
        """Ask for an editor."""
        self.post_message(self.EditorWanted())

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert a paste."""
        event.prevent_default()
        event.stop()
        self.before_key("")
        if not self.read_only:
            self.paste(event.text)
            self.focus()

    def paste(self, text: str) -> None:
        """Insert a text whole, with plain line breaks and nothing that a terminal would obey."""
        from agentmesh.tui.input.dropped_images import as_mentions  # not before a paste

        pasted = printable(text.replace("\r\n", "\n").replace("\r", "\n"))
        self.insert(as_mentions(pasted) or self._pastes.fold(pasted))

    # Placeholders of long pastes

    def edit(self, edit: Edit) -> EditResult:
        """Edit a placeholder as a whole: deleting a part deletes all of it, and text typed in it goes behind it."""
        start, end = edit.top, edit.bottom
        first, last = self._paste_around(start), self._paste_around(end)
        if first or last:
            if start == end and first:
                start = end = (start[0], first.end)
            else:
                start = (start[0], first.start) if first else start
                end = (end[0], last.end) if last else end
            edit = Edit(edit.text, start, end, edit.maintain_selection_offset)
        return super().edit(edit)

    def get_line(self, line_index: int) -> Text:
        """Return a line for drawing, placeholders marked."""
        line = super().get_line(line_index)
        for span in self._pastes.spans(line.plain):
            line.stylize("bold italic", span.start, span.end)
        return line

    def unfold_paste(self, location: tuple[int, int]) -> bool:
        """Put the pasted text in place of the placeholder at a location; return whether there was one."""
        span = self._paste_around(location, touching=True)
        if span is None:
            return False
        row, self._shown_before = location[0], None
        super().edit(Edit(span.text, (row, span.start), (row, span.end), False))
        self._shown_before = self.text
        return True

    def on_click(self, event: events.Click) -> None:
        """Unfold the paste that was clicked."""
        location = self.get_target_document_location(event)
        if self._paste_around(location):
            self.unfold_paste(location)

    def _paste_around(self, location: tuple[int, int], *, touching: bool = False) -> Span | None:
        row, column = location
        if row >= self.document.line_count:  # Ctrl+K in the last line deletes up to the one after it
            return None
        spans = self._pastes.spans(self.document.get_line(row))
        return next((s for s in spans if s.start < column < s.end or (touching and column in (s.start, s.end))), None)

    # Completion

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.text != self._shown_before:
            self._shown_before = None
            self._history.reset()
            self._open()
        self.post_message(self.Edited(self.text))

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self._popup is not None:
            self._insert(self._popup.at(event.option_index))

    def complete_anew(self) -> None:
        """Complete again with what is known now, unless the input is empty."""
        if self.text and not self._was_moved:
            self._open()

    def _open(self) -> None:
        choices = self._complete(self.text, self._position) if self.text else ()
        if len(choices) == 1 and self.text[choices[0].start : self._position] == choices[0].text.rstrip():
            choices = ()
        self._was_moved = False
        if choices and self._popup is None:
            from agentmesh.tui.input.completion_list import CompletionList

            self._popup = CompletionList()
            self.screen.mount(self._popup)
        if self._popup is not None:
            self._popup.show(choices, self.screen.size.height - self.region.y)

    @property
    def _open_popup(self) -> CompletionList | None:
        return self._popup if self._popup is not None and self._popup.is_open else None

    def _take(self) -> bool:
        chosen = self._popup.chosen if self._popup is not None else None
        if chosen is None:
            return False
        self._insert(chosen)
        return True

    def _insert(self, chosen: Completion) -> None:
        before = self.text[: chosen.start]
        start = (before.count("\n"), len(before) - before.rfind("\n") - 1)
        end = self.cursor_location
        self.close_completion()
        self.replace(chosen.text, start, end)
        self.focus()

    @property
    def _position(self) -> int:
        return len(self.get_text_range((0, 0), self.cursor_location))
