"""Commands and keys, as they are configured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content

from tui.commands import COMMANDS
from tui.keys import DEFAULTS, Keymap
from tui.screens.dialog import Dialog
from tui.widgets.plain import Plain

_MORE = (
    ("@name", "completes files of the working directory"),
    ("!command", "runs in the shell and shows its output"),
)


class Help(Dialog[None]):
    """A page that can be scrolled."""

    def __init__(self, keymap: Keymap) -> None:
        super().__init__()
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        """Show commands, then keys."""
        commands = [(command.usage, command.help) for _, command in sorted(COMMANDS.items())]
        keys = [(self._keymap.labels(key.id) or "(no key)", key.help) for key in DEFAULTS]
        with Vertical(classes="dialog help"), VerticalScroll():
            yield Plain("Commands", classes="title")
            yield from _rows([*commands, *_MORE])
            yield Plain("\nKeys  ([tui.keys] in the configuration changes them)", classes="title")
            yield from _rows(keys)
            yield Plain("\nEsc leaves this page", classes="detail")

    def on_mount(self) -> None:
        """Let the arrow keys scroll at once."""
        self.query_one(VerticalScroll).focus()


def _rows(lines: Iterable[tuple[str, str]]) -> Iterator[Horizontal]:
    for shown, does in lines:
        yield Horizontal(
            Plain(Content.styled(shown, "bold"), classes="left"), Plain(does, classes="right"), classes="row"
        )
