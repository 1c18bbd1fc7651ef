"""Commands and keys, as they are configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size

from agentmesh.tui.commands.catalog import COMMANDS
from agentmesh.tui.input.keys import DEFAULTS, Key, Keymap
from agentmesh.tui.widgets.plain import Plain
from agentmesh.tui.widgets.reading import ReadingPage

if TYPE_CHECKING:
    from agentmesh.config.custom_commands import CustomCommand

_LEFT = 27
"""Cells of the left column, where it is at most half of the page."""
_MORE = (
    ("@file", "names a file of the working directory; Tab completes it"),
    ("@agent text", "at the beginning: sends the text to that agent"),
    ("!command", "runs in the shell and shows its output"),
)


class Help(ReadingPage):
    """A page that can be scrolled."""

    def __init__(self, keymap: Keymap, custom: Mapping[str, CustomCommand], begins_at: str = "") -> None:
        """``begins_at`` is the place of the keys to show first; empty: the top."""
        super().__init__()
        self._keymap, self._custom, self._begins_at = keymap, custom, begins_at

    def compose(self) -> ComposeResult:
        """Show commands, then keys."""
        commands = [(command.usage, command.help) for _, command in sorted(COMMANDS.items())]
        with Vertical(classes="dialog help"), VerticalScroll():
            yield Plain("Commands", classes="title")
            yield _Rows([*commands, *_MORE])
            if self._custom:
                yield Plain("\nCustom commands and skills", classes="title")
                yield _Rows([(command.usage, _about(command)) for command in self._custom.values()])
            yield Plain("\nKeys  ([tui.keys] in the configuration changes them)", classes="title")
            yield _Rows(self._keys("screen", "prompt", "scrollback"))
            yield Plain("\nKeys on the board", classes="title board")
            yield _Rows(self._keys("board"))
            yield Plain("\nEsc or q leaves this page", classes="detail")

    def on_mount(self) -> None:
        """Let the arrow keys scroll at once."""
        page = self.query_one(VerticalScroll)
        page.focus()
        if self._begins_at:
            page.call_after_refresh(
                page.scroll_to_widget, self.query_one(f".{self._begins_at}"), animate=False, top=True
            )

    def _keys(self, *places: str) -> list[tuple[str, str]]:
        """Return the keys of these places, with what each does."""
        keys = [key for key in DEFAULTS if key.place in places]
        return [(self._keymap.labels(key.id) or "(no key)", _does(key, self._keymap)) for key in keys]


def _does(key: Key, keymap: Keymap) -> str:
    """Describe a key, and name the binding that has taken a default key from it."""
    lost = keymap.lost(key.id)
    return f"{key.help}\n({lost})" if lost else key.help


def _about(command: CustomCommand) -> str:
    """Describe a custom command, and name its file."""
    hidden = "\nnot used: a built-in command has this name" if command.name in COMMANDS else ""
    return f"{command.description}\n({command.kind}: {command.source}){hidden}"


class _Rows(Plain):
    """Two columns, in one widget: a page of widgets for each line of them takes ten times as long to open."""

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._rows = rows

    def get_content_height(self, _container: Size, _viewport: Size, width: int) -> int:
        """Return the number of lines at this width."""
        return sum(1 for _ in self._lines(width))

    def render(self) -> Content:
        """Return the lines."""
        return Content("\n").join(self._lines(self.content_size.width))

    def _lines(self, width: int) -> Iterator[Content]:
        room = min(_LEFT, max(width // 2, 2))
        for shown, does in self._rows:
            left = [line.rstrip() for line in Content.styled(shown, "bold").wrap(room - 1)]
            right = Content.styled(does, "$dim").wrap(max(width - room, 1))
            for one, other in zip_longest(left, right, fillvalue=Content("")):
                yield one.pad_right(room - one.cell_length) + other
