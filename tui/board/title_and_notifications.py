"""What a board tells outside of the screen: the terminal's title, its bell, and notifications of the desktop.

Texts in them are foreign: they are on one line, short, and without a character that a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agentmesh.domain.figures import listed
from agentmesh.domain.text import one_line
from agentmesh.tui.board.attention import needs_text

if TYPE_CHECKING:
    from agentmesh.tui.session.state import AgentFace, Board

PUSH_TITLE, POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""Have the terminal keep its title, and take it back."""
BELL = "\a"
_END = "\x1b\\"
_TITLE = 120
_BODY = 200
_SHOWN = 3
_ASKED = 80


def set_title(text: str) -> str:
    """Return the sequence that sets the terminal's title."""
    return f"\x1b]2;{one_line(text, _TITLE)}{_END}"


def title_of(board: Board | None, face: AgentFace | None) -> str:
    """Return the title: the agents that need the person, the agent in view, the program."""
    if board is None or face is None:
        return "agentmesh"
    return " · ".join(filter(None, [needs_text(board, face.id, ""), face.name, "agentmesh"]))


def protocol_of(environ: Mapping[str, str], wanted: str) -> str:
    """Return the protocol for notifications: the wanted one, or for ``auto`` the protocol of this terminal."""
    if wanted in ("off", "osc9", "osc777", "osc99"):
        return wanted
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "") or environ.get("LC_TERMINAL", "")
    if "KITTY_WINDOW_ID" in environ or term == "xterm-kitty":
        return "osc99"
    if program in ("iTerm.app", "iTerm2", "WezTerm", "ghostty") or {"WT_SESSION", "ConEmuPID"} & environ.keys():
        return "osc9"
    if term.startswith(("foot", "rxvt")) or "VTE_VERSION" in environ or program == "contour":
        return "osc777"
    return "off"


def notification(protocol: str, title: str, body: str, *, in_tmux: bool = False) -> str:
    """Return the sequence that shows a notification; empty for ``off``. tmux hands it on to its terminal."""
    title, body = one_line(title, _TITLE), one_line(body, _BODY)
    match protocol:
        case "osc9":  # never begins with a digit: "4;" would draw a progress bar
            said = f"\x1b]9;{title}: {body}{_END}"
        case "osc777":
            said = f"\x1b]777;notify;{title.replace(';', ',')};{body}{_END}"
        case "osc99":
            said = f"\x1b]99;i=agentmesh:d=0;{title}{_END}\x1b]99;i=agentmesh:p=body;{body}{_END}"
        case _:
            return ""
    return "\x1bPtmux;" + said.replace("\x1b", "\x1b\x1b") + _END if in_tmux else said


def asks(before: Board, now: Board) -> list[str]:
    """Return a sentence for each request that is new."""
    known = {request.id for request in before.requests}
    return [
        f"{request.name} asks: {one_line(request.question or request.tool, _ASKED)}"
        for request in now.requests
        if request.id not in known
    ]


def ends(before: Board, now: Board) -> Iterator[str]:
    """Yield a sentence for each agent that failed, and for each that finished while nothing above it runs."""
    for face in now.faces.values():
        was = before.get(face.id)
        if was is None or face.is_running or face.is_dead or face.view.clean or face.id in now.silent:
            continue
        if not was.is_running and (was.view.unseen or not face.view.unseen):
            continue  # nothing ended; a short turn may begin and end between two boards
        how = face.mark.label
        if how in ("failed", "out of budget"):
            yield f"{face.name} {'is out of budget' if how == 'out of budget' else how}"
        elif how in ("done", "idle") and not any(now.faces[above].is_running for above in now.lineage(face.id)[1:]):
            yield f"{face.name} finished"


class Notifier:
    """Gathers what happens for a moment, and tells it in one notification while nobody looks at the terminal."""

    def __init__(
        self, write: Callable[[str], None], environ: Mapping[str, str], *, notify: str = "auto", rings: bool = True
    ) -> None:
        """``write`` hands a sequence to the terminal; ``notify`` and ``rings`` are the settings."""
        self._write, self._rings = write, rings
        self._protocol, self._in_tmux = protocol_of(environ, notify), "TMUX" in environ
        self._board: Board | None = None
        self._asked: list[str] = []
        self._ended: list[str] = []

    def take(self, board: Board, *, is_focused: bool) -> bool:
        """Take a board; return whether there is something to tell soon. A focused terminal shows it already."""
        before, self._board = self._board, board
        if is_focused or before is None or before.session.id != board.session.id:
            self._asked, self._ended = [], []
            return False
        self._asked += asks(before, board)
        self._ended += ends(before, board)
        return bool(self._asked or self._ended)

    def tell(self, *, is_focused: bool) -> None:
        """Tell what was gathered. The bell for a request has rung already."""
        news, self._asked, has_ended, self._ended = [*self._asked, *self._ended], [], bool(self._ended), []
        if is_focused or not news or self._board is None:
            return
        session = self._board.session
        title = one_line(f"agentmesh · {session.title}" if session.title else "agentmesh", 60)
        sequence = notification(self._protocol, title, listed(news, _SHOWN), in_tmux=self._in_tmux)
        self._write(sequence + (BELL if self._rings and has_ended else ""))
