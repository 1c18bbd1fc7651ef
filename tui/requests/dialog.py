"""The dialog for one request: the call in full, and the ways to answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.types import CSSPathType

from agentmesh.domain.fan_out import wish
from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line, visible
from agentmesh.tui.conversation.diff import SIDE_BY_SIDE, DiffView
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.requests.choices import Choices
from agentmesh.tui.requests.field import Field
from agentmesh.tui.requests.guarded_dialog import LOW, GuardedDialog
from agentmesh.tui.requests.options import Option, options
from agentmesh.tui.requests.proposals import Proposal
from agentmesh.tui.requests.replies import BadEdit, Reply, always, edit_says, edit_text, edited, proposed_rules, refused
from agentmesh.tui.requests.request_text import lineage
from agentmesh.tui.widgets import dialog
from agentmesh.tui.widgets.plain import Plain
from agentmesh.tui.widgets.scrolling import scroll_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.widget import Widget

    from agentmesh.domain.rows import Request
    from agentmesh.tui.requests.queue import RequestQueue

_DIALOG_STYLES = Path(dialog.__file__).with_name("dialog.tcss")
_LOWEST = 12
"""Rows of a screen that has a line to say how much is below; a lower one says it among the keys."""
_FEW_LINES = 16
"""Rows of a screen below which the ways to answer an approval are two a line, without their meanings."""
_BESIDE = 13
"""Rows of a dialog beside its choices: three of a proposal, two of keys, and one of each other part."""
_AROUND = 16
"""Cells left and right of a diff in the widest dialog."""


class _FieldText(NamedTuple):
    """The words around the field for one purpose."""

    says: str
    keys: str


_FIELDS = {
    "always": _FieldText(
        "Allow from now on, for all agents of this session (one rule a line):", "Enter asks once more"
    ),
    "no": _FieldText("Why not? The agent reads it.", "Enter refuses, also without a reason · Esc goes back"),
    "edit": _FieldText("", "Enter allows it as it stands here"),
    "text": _FieldText("Your answer:", "Enter answers"),
}


_KEPT = ("text", "no")
"""Purposes of the field whose text is kept until the request is answered."""
_CONFIRMED = {
    "always": "Always, for all agents of this session? Again allows it",
    "many": "Never ask again before agents start, in this session? Again allows it",
    "edits": "Accept all edits in the working directory? Again accepts",
    "rules": "Allow this from now on? Enter again allows it",
}
"""The questions before an answer that allows more than one call."""


class Rest(Vertical):
    """The part above or below the proposal; the proposal gets the remaining room."""

    class Resized(Message):
        """Its height may have changed."""

    def on_resize(self) -> None:
        """Tell the dialog."""
        self.post_message(self.Resized())


def _below(part: Widget, key: str) -> str:
    """Return how many lines of a part are below what is shown, and the key that shows them; "" if there are none."""
    left = part.max_scroll_y - round(part.scroll_y)
    return f"▾ {plural(left, 'more line')} · {key}" if left > 0 else ""


class RequestDialog(GuardedDialog[Reply]):
    """Returns a Reply; None if it was closed because the request was settled."""

    CSS_PATH: ClassVar[CSSPathType | None] = [_DIALOG_STYLES, Path(__file__).with_name("dialog.tcss")]

    def __init__(
        self,
        request: Request,
        shown: Proposal,
        place: tuple[int, int],
        keymap: Keymap,
        *,
        workdir: Path = Path("/"),
        draft: str = "",
        type_on: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``type_on`` takes words that were typed into the dialog: they are for the input below it."""
        super().__init__(keymap, type_on)
        self.request = request
        self._shown, self._place, self._workdir = shown, place, workdir
        self._draft = draft
        self._choices = Choices(options(request))
        self._field = Field(keymap)
        self._list_keys = next(
            (key.keys.split(",") for key in keymap.bindings("screen") if key.id == "requests.answer"), []
        )
        self._for = ""
        """The purpose of the field while it is shown."""
        self._more = ""
        """How much of the proposal is below, if the line of keys says it."""
        self._confirming = ""
        """The choice that was made once and counts the second time: "always", "edits"."""

    @property
    def has_field(self) -> bool:
        """Whether a field is shown."""
        return bool(self._for)

    @property
    def draft(self) -> str:
        """The text that was typed and not submitted."""
        text = self._field.text if self._for in _KEPT else self._draft
        return text if text.strip() else ""

    def compose(self) -> ComposeResult:
        """Show the agent, its request, and the ways to answer."""
        with Vertical(classes="dialog request"):
            with Rest():
                yield Plain(id="title", classes="title")
                yield Plain(self._origin(), id="origin", classes="detail")
            with VerticalScroll(id="proposal", can_focus=False):
                if self._shown.path:
                    yield Plain(visible(self._shown.path), classes="path")
                    yield DiffView(self._shown.text, self._shown.path)
                else:
                    yield Plain(self._shown.text)
            with Rest():
                yield Plain(id="more")
                yield Plain(self._shown.remark, id="remark", classes="detail")
                yield self._choices
                yield Plain(id="more-choices")
                yield Plain(id="field-says")
                yield self._field
                yield Plain(id="keys", classes="detail")

    def on_mount(self) -> None:
        """Show the choices; keys count a moment after they were drawn."""
        self.show_place(self._place)
        self._ask("" if self._choices.options else "text")
        for part in (self.query_one("#proposal"), self._choices):
            for what in ("scroll_y", "virtual_size"):
                self.watch(part, what, self._changed, init=False)
        super().on_mount()

    def keys_begin(self) -> None:
        """Name the keys, and give the field of an open question the focus."""
        self._show_keys()
        if self._for:
            self._field.focus()

    @on(Rest.Resized)
    def _fit(self, event: Rest.Resized | None = None) -> None:
        """Give the proposal the room that the rest leaves."""
        if event:
            event.stop()
        taken = sum(rest.outer_size.height for rest in self.query(Rest))
        least = 1 if self.has_class("-low") else 3
        self.query_one("#proposal").styles.max_height = max(self.size.height - self._frame - taken, least)
        self.call_after_refresh(self._show_more)

    def _changed(self) -> None:
        self.call_after_refresh(self._show_more)

    def _show_more(self) -> None:
        """Say how much of the proposal and the choices is below what is shown: a bar at the side is easily missed."""
        is_lowest, more = self.size.height < _LOWEST, self.query_one("#more", Plain)
        says, choices = _below(self.query_one("#proposal"), "PgDn"), self.query_one("#more-choices", Plain)
        choices.update(_below(self._choices, "↓"))
        choices.display = self._choices.display and bool(choices.content) and not self.has_class("-low")
        more.display = not is_lowest and (bool(says) or not self.has_class("-low"))
        more.update(says)
        among_keys = says if is_lowest else ""
        if among_keys != self._more:
            self._more = among_keys
            if not self._for:  # else a complaint may stand there
                self._show_keys()

    @property
    def _frame(self) -> int:
        """Lines of the border, and above the proposal."""
        return 2 if self.has_class("-low") else 3

    def on_resize(self) -> None:
        """Fit into the new size: a low screen has room for the ways to answer, not for explanations."""
        is_low = self.size.height < LOW
        self.set_class(is_low, "-low")
        self._choices.styles.max_height = None if is_low else self.size.height - _BESIDE
        has_few_lines = self.size.height < _FEW_LINES and self.request.kind != "question"
        self._choices.set_class(
            has_few_lines and bool(proposed_rules(self.request) or not self.request.rules), "-short"
        )
        has_room = bool(self._shown.path) and self.size.width >= SIDE_BY_SIDE + _AROUND
        self.query_one(".request").set_class(has_room, "-wide")
        self.query_one("#remark").display = bool(self._shown.remark) and not self.has_class("-low")
        self._fit()

    def show_queue(self, queue: RequestQueue) -> bool:
        """Show its place in the queue; return whether its request still waits."""
        waits = queue.waits(self.request.id)
        if waits:
            self.show_place(queue.place(self.request.id))
        return waits

    def show_place(self, place: tuple[int, int]) -> None:
        """Say which of how many this is."""
        self._place = place
        number, count = place
        asked = wish(self.request.tool, self.request.agents)
        what = "asks you" if self.request.kind == "question" else f"asks: may it {asked}?"
        queue = (f"   {number} of {count}", "$text-warning") if count > 1 else ""
        self.query_one("#title", Plain).update(Content.assemble(f"{self.request.name} {one_line(what, 60)}", queue))
        self._show_keys()

    # Keys

    def action_leave(self) -> None:
        """Esc: back to the choices; from there put the request aside."""
        if (self._for and self._choices.options) or self._confirming:
            self._draft, self._confirming = self.draft, ""
            self._ask("")
        else:
            self.leave(Reply("later", draft=self.draft))

    def take_key(self, event: events.Key) -> None:
        """Scroll the proposal, go on to the next request or to the list of all, or move in the choices."""
        if scroll_by(event.key, self.query_one("#proposal", VerticalScroll)):
            return
        if event.key == "tab" and self._for in ("", "text"):
            self.leave(Reply("next", draft=self.draft))
        elif event.key in self._list_keys:
            self.leave(Reply("list", draft=self.draft))
        elif self._for:
            self._field.focus()
        elif chosen := self._choices.press(event):
            self._choose(chosen)

    def take_letter(self, letter: str) -> None:
        """Choose the option that has this key."""
        if chosen := self._choices.named(letter):
            self._choose(chosen)

    def put_aside(self) -> None:
        """Leave the request for later."""
        self.leave(Reply("later"))

    @on(Choices.Clicked)
    def _clicked(self, event: Choices.Clicked) -> None:
        event.stop()
        if self._key_guard.is_over(event.time):
            self._choose(event.option)

    def _choose(self, option: Option) -> None:
        is_confirmed = self._confirming == option.name
        self._confirming = option.name if option.name in _CONFIRMED else ""
        match option.name:
            case "always" if proposed_rules(self.request):
                self._confirming = ""
                self._ask("always")
            case "always" | "edits" if not is_confirmed:
                self._show_keys()
            case "edits":
                self.leave(Reply("edits", {"decision": "once"}))
            case "once" | "always":
                self.leave(Reply("answer", {"decision": option.name}))
            case "go":
                self.leave(Reply("go"))
            case "no" | "edit" | "text":
                self._ask(option.name)
            case _:
                self.leave(Reply("answer", {"text": option.value}))

    # The field

    def _ask(self, what: str) -> None:
        """Show the field for this purpose; without a purpose, show the choices."""
        self._for = what
        self._choices.display = not what
        self._field.display = bool(what)
        says = self.query_one("#field-says", Plain)
        says.display = bool(what)
        if what:
            says.update(_FIELDS[what].says or edit_says(self.request))
            self._field.put(self._first_text(what))
        if what and self._choices.options:
            self._field.focus()
        elif not what:
            self.set_focus(None)
        self._show_keys()

    def _first_text(self, what: str) -> str:
        """Return the first text of the field."""
        match what:
            case "always":
                return proposed_rules(self.request)
            case "edit":
                return edit_text(self.request)
        return self._draft

    def _show_keys(self) -> None:
        if not self.takes_keys:
            self.query_one("#keys", Plain).update("keys count in a moment")
            return
        goes_back = self._confirming or (self._for and self._choices.options)
        later = "Esc goes back" if goes_back else "Esc later"
        listed = self._keymap.label("requests.answer")
        following = ["Tab the next", *([f"{listed} lists all"] if listed else [])] if self._place[1] > 1 else []
        if self._confirming:
            what = "rules" if self._for else self._confirming
            keys = [_CONFIRMED["many" if what == "always" and self.request.agents is not None else what], later]
        elif not self._for:
            keys = [self._more, "↑ ↓ Enter or a key chooses", "" if self._more else "PgDn scrolls", later, *following]
        else:
            editor = self._keymap.label("prompt.editor")
            keys = [_FIELDS[self._for].keys]
            keys += [f"{editor} your editor"] if editor and self._for != "no" else []
            keys += [later] if self._for != "no" else []
        self.query_one("#keys", Plain).update(" · ".join(filter(None, keys)))

    @on(Field.Entered)
    def _entered(self, event: Field.Entered) -> None:
        event.stop()
        if self._for == "no":
            self.leave(Reply("answer", refused(event.text)))
        elif self._for == "text":
            if event.text.strip():
                self.leave(Reply("answer", {"text": event.text.strip()}))
        else:
            try:
                self._take_edited(event.text)
            except BadEdit as error:
                self._complain(str(error))

    def _take_edited(self, text: str) -> None:
        """Answer with an edited text; rules that allow calls from now on have to be entered twice."""
        if self._for == "edit":
            self.leave(Reply("answer", edited(self.request, text)))
            return
        words, now = always(self.request, text, self._workdir), time.monotonic()
        if not self._confirming:
            self._confirming = "always"
            self._confirm_guard.appeared(now)
            self._show_keys()
        elif self._confirm_guard.counts(now):
            self.leave(Reply("answer", words))

    @on(Field.Changed)
    def _edited(self, event: Field.Changed) -> None:
        """Ask again about rules that were edited after the first Enter."""
        event.stop()
        if self._for == "always":
            self._confirming = ""
            self._show_keys()

    @on(Field.EditorFailed)
    def _editor_failed(self, event: Field.EditorFailed) -> None:
        event.stop()
        self._complain(event.text)

    def _complain(self, text: str) -> None:
        self.query_one("#keys", Plain).update(Content.styled(text, "$text-error"))

    def _origin(self) -> str:
        reason = one_line(visible(self.request.reason), 300)
        return " · ".join(filter(None, [lineage(self.request), reason]))
