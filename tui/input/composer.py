"""The input with its sign. It keeps a draft per agent, shows a capture, and takes only commands for dead agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message

from agentmesh.domain.ids import AgentId
from agentmesh.tui.commands.calls import CUSTOM, CUSTOM_CHILD, SAY, SAY_TO, SHELL, TASK, URGENT, Call, Problem
from agentmesh.tui.commands.messages import CallRequested
from agentmesh.tui.input.drafts import Drafts
from agentmesh.tui.input.history import History
from agentmesh.tui.input.keys import Keymap
from agentmesh.tui.input.mention_line import MentionLine
from agentmesh.tui.input.prompt import Prompt
from agentmesh.tui.session.state import AgentFace
from agentmesh.tui.widgets.message import message
from agentmesh.tui.widgets.plain import Plain

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType
    from agentmesh.config.custom_commands import CustomCommand
    from agentmesh.tui.commands.complete import Completion

_PLACEHOLDER = "{}   / commands   @ files   ! shell"
_DEAD = "dead: nothing more can be said to it   / commands"

_MOST_LINES = 12
_SHARE = 3
"""The input has at most a third of the screen."""

_FOR_THE_LIVING = frozenset({CUSTOM, CUSTOM_CHILD, SAY, SHELL, TASK, URGENT})
"""Calls that leave something with the agent in view."""
_FROM_AFAR = frozenset({SAY, SAY_TO, SHELL})
"""Calls that may be made for an agent out of view: nobody needs to see their outcome."""


class _PendingMove:
    """A move of the view that a command began. Input entered meanwhile is for its destination, and is held for it."""

    def __init__(self, call: Call | None = None, origin: AgentId | None = None) -> None:
        """``call`` is the command, ``origin`` the agent in view then; both None before any agent is in view."""
        self.call, self.origin = call, origin
        self.held: list[str] = []
        self.destination: AgentId | None = None
        """The agent, once it is known."""


class Composer(Horizontal):
    """Turns input into calls. Input that is no call stays, and feedback says why."""

    class Held(Message):
        """Input is held for an agent on its way into view."""

    @message
    class Feedback(Message):
        """A sentence about the input."""

        text: str

    def __init__(
        self,
        keymap: Keymap,
        history: History,
        complete: Callable[[str, int], Sequence[Completion]],
        agent: Callable[[str], AgentFace | None],
    ) -> None:
        """``agent`` returns the agent of a name."""
        super().__init__(id="composer")
        self._agent = agent
        self.mention_line = MentionLine(agent, lambda name: name in self.types())
        """Not a part of it: the screen shows it below."""
        self.custom: Callable[[], Mapping[str, CustomCommand]] = dict
        """Returns the custom commands, as their files are now; set when there is a session."""
        self.types: Callable[[], Mapping[str, AgentType]] = dict
        """Returns the agent types in the same way."""
        self.prompt = Prompt(keymap, history, complete, self._submit)
        self._sign = Plain("❯ ", id="sign")
        self._history = history
        self.drafts = Drafts()
        """Texts that are typed for agents out of view."""
        self._agent_id: AgentId | None = None
        self._capturing = self._is_dead = self._has_ended = False
        self._name = ""
        self._refused: str | None = None
        """The unknown command in the input; entered again in a capture, it is kept as text."""
        self.prompt.placeholder = _PLACEHOLDER.format("Type a message")
        self._ended = _ended(keymap.label("entry.fork"), keymap.label("app.quit"))
        self._move: _PendingMove | None = _PendingMove()
        """The move that the view waits for; None after the person went elsewhere."""
        self._moves = [self._move]
        """All moves that have not ended."""

    def fit(self, height: int) -> None:
        """Leave room for the conversation on a screen of so many lines: a longer draft scrolls."""
        self.prompt.styles.max_height = max(min(_MOST_LINES, height // _SHARE), 1)

    def compose(self) -> ComposeResult:
        """Show sign and input."""
        yield self._sign
        yield self.prompt

    def show(self, face: AgentFace, *, has_ended: bool = False) -> None:
        """Become the input of this agent; a dead one takes commands only. ``has_ended``: the session has ended."""
        move = self._move
        arrived = move is not None and (self._agent_id is None or face.id == move.destination)
        if face.id != self._agent_id:
            self._change(face.id, comes_along=arrived)
            self._move = None
        self._capturing = face.capturing
        self.set_class(face.is_dead, "-dead")
        self.set_class(face.capturing, "-capturing")
        self._is_dead, self._name, self._has_ended = face.is_dead, face.name, has_ended
        self._show_sign()
        self.prompt.placeholder = self._placeholder(face, has_ended=has_ended)
        if self.screen.focused is None:
            self.prompt.focus()
        if arrived and move:
            self._end(move)
            self._enter(move.held)
        elif move and move.destination and self._move is None:
            self._send_on(move, move.destination)

    @on(Prompt.ModeChanged)
    def _show_sign(self) -> None:
        modes = [word for word, holds in (("capturing", self._capturing), ("normal", self.prompt.is_normal)) if holds]
        sign = "✗ " if self._is_dead else f"({', '.join(modes)}) ❯ " if modes else "❯ "
        self._sign.update(Content(sign))

    def _placeholder(self, face: AgentFace, *, has_ended: bool) -> str:
        if face.is_dead:
            return self._ended if has_ended else _DEAD
        return "" if face.capturing else _PLACEHOLDER.format(f"Message {face.name}")

    def leave(self, call: Call, origin: AgentId) -> tuple[Sequence[str], str]:
        """Return the held input and the typed text for the session that a command has made."""
        move = self._find_move(call, origin)
        for other in self._moves:
            for text in other.held if other is not move else ():
                self._history.add(text)
        return (move.held if move else ()), (self.prompt.whole if move is self._move else "")

    def take_over(self, held: Sequence[str], typed: str) -> None:
        """Take over held input and typed text from another session, before any agent is in view."""
        if self._move:
            self._move.held = list(held)
        self.prompt.put(typed)

    def set_destination(self, call: Call, origin: AgentId, destination: AgentId | None) -> None:
        """Set where such a command leads; None: nowhere, so held input goes back."""
        move = self._find_move(call, origin)
        if move is None:
            return
        move.destination = destination
        if destination is None:
            self._end(move)
            self.give_back(origin, "\n".join(move.held))
        elif move is not self._move:
            self._send_on(move, destination)

    def missed(self, destination: AgentId) -> None:
        """Give held input back to where it was typed: its agent can never come into view."""
        for move in [move for move in self._moves if move.destination == destination]:
            self._end(move)
            if move.origin is not None:
                self.give_back(move.origin, "\n".join(move.held))

    def keep_typed(self) -> None:
        """Keep all that was typed and not sent where ↑ finds it: the session is left."""
        for text in (*map(self.prompt.unfolded, self.drafts.texts), *self.held, self.prompt.whole):
            self._history.add(text)

    def _find_move(self, call: Call, origin: AgentId) -> _PendingMove | None:
        return next((w for w in self._moves if w.call == call and w.origin == origin and w.destination is None), None)

    def _end(self, move: _PendingMove) -> None:
        self._moves.remove(move)
        if move is self._move:
            self._move = None

    def _send_on(self, move: _PendingMove, destination: AgentId) -> None:
        """Send held input to its agent although the person went elsewhere; input that needs them becomes a draft."""
        self._end(move)
        for place, text in enumerate(move.held):
            understood = self._understand(text)
            if not isinstance(understood, Call) or understood.name not in _FROM_AFAR:
                self.give_back(destination, "\n".join(move.held[place:]))
                return
            self._history.add(text)
            self.post_message(CallRequested(understood, destination))

    def _change(self, agent_id: AgentId, *, comes_along: bool) -> None:
        """Become another agent's input; text typed during the move comes along."""
        typed = self.prompt.text
        if not comes_along:
            self._history.reset()
            if self._agent_id is not None:
                self.drafts.keep(self._agent_id, typed)
            self.prompt.put(self.drafts.take(agent_id))
        self._agent_id = agent_id
        self._refused = None

    def _enter(self, texts: Sequence[str]) -> None:
        """Enter the held input; from the first refused one on, it stays in the input."""
        for place, text in enumerate(texts):
            if not self._submit(text):
                self.prompt.put("\n".join(filter(None, [*map(self.prompt.folded, texts[place:]), self.prompt.text])))
                return

    def type_on(self, text: str) -> None:
        """Put text that was typed or pasted elsewhere at the cursor."""
        self.prompt.paste(text)

    def give_back(self, agent_id: AgentId, text: str) -> None:
        """Put a text that could not be sent before the text typed meanwhile.

        Not a command: the typed text would become its argument. Its error was shown, and ↑ brings it back.
        """
        text = self.prompt.folded(text)
        if agent_id != self._agent_id:
            self.drafts.give_back(agent_id, text)
        elif text and not (text.startswith("/") and self.prompt.text.strip()):
            self.prompt.put("\n".join(filter(None, [text, self.prompt.text])))

    @property
    def held(self) -> Sequence[str]:
        """The input that was entered for agents on their way into view."""
        return [text for move in self._moves for text in move.held]

    def clear(self) -> bool:
        """Empty the input, the text kept in the history; return whether there was any."""
        text = self.prompt.whole
        if text.strip():
            self._history.add(text)
        self.prompt.put("")
        return bool(text)

    def remember(self, text: str) -> None:
        """Keep a text that was typed elsewhere where ↑ finds it."""
        self._history.add(text)

    def _submit(self, text: str) -> bool:
        """Parse the input and request the call; return whether to clear the input."""
        if self._move and text.strip():
            self._move.held.append(text)
            self.post_message(self.Held())
            return True
        understood = self._understand(
            text, capturing=self._capturing and not self._is_dead, again=_word(text) == self._refused
        )
        self._refused = None
        if isinstance(understood, Problem):
            self._refused = _word(text) if understood.again_captures else None
            self.post_message(self.Feedback(f"{understood.text} {understood.hint}".rstrip()))
            return False
        if understood is None or self._agent_id is None:
            return False
        if self._is_dead and understood.name in _FOR_THE_LIVING:
            name = text.split(maxsplit=1)[0]
            refused = f"takes no {name}: other" if name.startswith("/") else "reads nothing:"
            dead = f"{self._name} is dead and {refused} / commands and @agent text go on."
            self.post_message(self.Feedback(self._ended if self._has_ended else dead))
            return False
        if _leads_elsewhere(understood):
            self._move = _PendingMove(understood, self._agent_id)
            self._moves.append(self._move)
        self._history.add(text)
        self.post_message(self.Feedback(""))
        self.post_message(CallRequested(understood, self._agent_id))
        return True

    def _understand(self, text: str, *, capturing: bool = False, again: bool = False) -> Call | Problem | None:
        from agentmesh.tui.commands.parse import parse  # not before the first frame

        custom = self.custom() if text.lstrip().startswith("/") else {}
        return parse(
            text,
            capturing=capturing,
            again=again,
            custom=custom,
            is_agent=self._agent,
            is_type=lambda name: name in self.types(),
        )

    @on(Prompt.Edited)
    def _edited(self, event: Prompt.Edited) -> None:
        event.stop()
        self.mention_line.look(event.text, capturing=self._capturing)
        if self._refused is not None and _word(event.text) != self._refused:
            self._refused = None
            self.post_message(self.Feedback(""))

    @on(Prompt.EditorWanted)
    def _edit(self, event: Prompt.EditorWanted) -> None:
        from agentmesh.tui.input import editor

        event.stop()
        try:
            left = editor.outside(self.app, lambda: editor.edit(self.prompt.whole, os.environ))
            self.prompt.put_folded(left.removesuffix("\n"))
        except editor.EditorFailed as error:
            self.post_message(self.Feedback(str(error)))


def _leads_elsewhere(call: Call) -> bool:
    """Whether a command moves the view once it is done."""
    match call:
        case Call("fork" | "new" | "custom command for a child") | Call("kill", ()):
            return True
        case Call("agents", args):
            return bool(args)
        case _:
            return False


def _word(text: str) -> str:
    """Return the first word: the name of a command."""
    return next(iter(text.split(maxsplit=1)), "")


def _ended(fork: str, leave: str) -> str:
    """Return the placeholder of a session without living agents: the keys that still do something."""
    ways = [f"Tab, {fork} begin a new one"] if fork else []
    ways += [f"{leave} twice leaves"] if leave else []
    return f"the session has ended: {'; '.join(ways)}".removesuffix(": ")
