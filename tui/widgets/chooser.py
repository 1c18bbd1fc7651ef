"""A dialog to choose one of many by typing some of its letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from agentmesh.tui.widgets.dialog import Dialog
from agentmesh.tui.widgets.fuzzy import best, containing
from agentmesh.tui.widgets.plain import Plain

T = TypeVar("T")

_MOST = 500
"""The most choices that are drawn. Typed letters find the others."""


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """Something to choose."""

    value: T
    name: str
    """The text that typing is matched against, and that is shown first."""
    before: Content
    """A mark before the name."""
    after: str = ""
    """The text behind the name."""
    is_dim: bool = False
    """Whether it matters less than the others."""


class Chooser(Dialog[T]):
    """A field and a list; left with the chosen value."""

    BINDINGS = [  # noqa: RUF012 - Textual's form
        Binding("up,ctrl+k", "move(-1)", "Up", id="chooser.up", tooltip="The one above", priority=True),
        Binding("down,ctrl+j", "move(1)", "Down", id="chooser.down", tooltip="The one below", priority=True),
    ]

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice[T]],
        *,
        highlighted: T | None = None,
        beyond: Callable[[str], None] | None = None,
        is_ordered: bool = False,
        preview: Callable[[T], None] | None = None,
    ) -> None:
        """``beyond`` looks for a typed name that is not in the list.

        ``is_ordered`` keeps the order, and lists the things that contain every typed word; below them a line looks
        ``beyond``. Otherwise the best match comes first. ``preview`` hears of each value that is highlighted.
        """
        super().__init__()
        self._beyond, self._find = beyond, containing if is_ordered else best
        self._preview = preview
        self._is_ordered = is_ordered
        self._title, self._choices, self._shown = title, choices, list(choices)
        self._first = next((n for n, choice in enumerate(choices) if choice.value == highlighted), 0)
        if self._first >= _MOST:  # it must be among those that are drawn
            self._choices = [choices[self._first], *choices[: self._first], *choices[self._first + 1 :]]
            self._first = 0

    def compose(self) -> ComposeResult:
        """Show title, field and list."""
        with Vertical(classes="dialog"):
            yield Plain(self._title, classes="title")
            yield Input(placeholder="type to search, ↑ ↓ to move, Enter to choose, Esc to leave")
            yield OptionList(markup=False)
            yield Plain(self._nothing, classes="detail")

    @property
    def _nothing(self) -> str:
        return "nothing matches" if self._beyond is None else "not listed: Enter looks for it"

    def on_mount(self) -> None:
        """List all."""
        self._list("")
        self.query_one(OptionList).highlighted = self._first if self._shown else None

    def action_move(self, by: int) -> None:
        """Move the highlight, round at the ends."""
        options = self.query_one(OptionList)
        if self._shown:
            options.highlighted = ((options.highlighted or 0) + by) % options.option_count

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        self._list(event.value.strip())

    @on(Input.Submitted)
    def _choose(self, event: Input.Submitted) -> None:
        at = self.query_one(OptionList).highlighted
        self._leave(0 if at is None else at, event.value.strip())

    def _leave(self, at: int, typed: str) -> None:
        """Choose a thing of the list, or look beyond it for what is typed."""
        if at < len(self._shown):
            self.dismiss(self._shown[at].value)
        elif self._beyond and typed:
            self._beyond(typed)
            self.dismiss(None)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if self._preview is not None and event.option_index < len(self._shown):
            self._preview(self._shown[event.option_index].value)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self._leave(event.option_index, self.query_one(Input).value.strip())

    def _list(self, wanted: str) -> None:
        found = self._find(wanted, self._choices, lambda choice: choice.name, len(self._choices))
        self._shown = found[:_MOST]
        options = self.query_one(OptionList)
        options.clear_options()
        heads = [Content.assemble(one.before, (one.name, "$dim" if one.is_dim else "")) for one in self._shown]
        wide = max((head.cell_length for head, one in zip(heads, self._shown, strict=True) if one.after), default=0)
        options.add_options(
            Option(
                Content.assemble(head.pad_right(max(wide - head.cell_length, 0)), (f"  {choice.after}", "$dim"))
                if choice.after
                else head
            )
            for head, choice in zip(heads, self._shown, strict=True)
        )
        if self._beyond and self._is_ordered and wanted and self._shown:
            options.add_option(Option(Content.styled("… look for it in all", "$dim")))
        options.highlighted = 0 if self._shown else None
        options.display = bool(self._shown)
        left = len(found) - len(self._shown)
        detail = self.query_one(".detail", Plain)
        detail.update(f"{left:,} more: type some letters" if left else self._nothing)
        detail.display = bool(left) or not self._shown
        options.set_class(bool(left), "-more")
