"""Lays out the board: a line for each agent, the number of agents of each kind, and the agents that ran lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

from agentmesh.domain.attention import Need
from agentmesh.domain.figures import count, listed, money, plural
from agentmesh.domain.folded_agents import is_folded, silent_note
from agentmesh.domain.text import one_line
from agentmesh.tui.widgets.formats import duration, fit
from agentmesh.tui.widgets.lines import Line, Piece

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.domain.rows import Request
    from agentmesh.store.board import Elsewhere, Ran
    from agentmesh.tui.session.state import AgentFace, Board, Details

Asks = Callable[["Request"], str]
_SAYS = 200
"""Most characters of an activity that are read; a line has less room."""
_MIN_DOING = 12
_NAME = (8, 24)
"""The least and the most cells of a name's column."""
_ASKS = ("!", "asks")
_ROLES: Mapping[Need, str] = {
    Need.ASKS: "warning",
    Need.FAILED: "failed",
    Need.DONE: "done",
    Need.RUNNING: "running",
    Need.WAITING: "running",
    Need.IDLE: "idle",
    Need.DEAD: "dim",
}


class BoardRow(NamedTuple):
    """An agent on the board."""

    face: AgentFace
    need: Need
    doing: str
    """Its activity, in words."""
    session: str = ""
    """The title of its session, on a board of all sessions."""
    database: str = ""
    """The name of its session's database there, if there are several."""

    @property
    def glyph(self) -> str:
        """One cell wide."""
        return _ASKS[0] if self.need is Need.ASKS else self.face.mark.glyph

    @property
    def state(self) -> str:
        """The word for how it stands."""
        if self.need is Need.ASKS:
            return _ASKS[1]
        return self.need.value if self.need in (Need.RUNNING, Need.WAITING) else self.face.mark.label


def rows(board: Board, wanted: str, asks: Asks, *, silents: bool = False) -> list[BoardRow]:
    """Return the agents of a session, those that need a person first; equal ones keep the order of rotation.

    ``wanted`` is what their lines must contain; ``asks`` says what a request asks. Sub-agents whose task is over are
    left out, and silent agents unless ``silents`` or something is wanted.
    """
    hidden = board.resting if silents or wanted else board.folded
    found = [
        BoardRow(face, face.need, _doing(board, face, asks)) for face in board.faces.values() if face.id not in hidden
    ]
    return _sorted(found, wanted)


def rows_everywhere(everybody: Sequence[Elsewhere], wanted: str = "", *, silents: bool = False) -> list[BoardRow]:
    """Return the agents of all sessions, those that need a person first; silent ones as ``rows`` does."""
    from agentmesh.tui.session.state import AgentFace

    found = []
    for one in everybody:
        view = one.view
        need = Need.of(view.status, view.activity, unseen=view.unseen, asks=one.asks)
        if is_folded(view, need) and not (silents or wanted):
            continue
        doing = _at_work(view.activity) if need in (Need.RUNNING, Need.WAITING, Need.ASKS) else ""
        found.append(BoardRow(AgentFace(view, view.parent_id), need, doing, one_line(one.session, 60), one.database))
    return _sorted(found, wanted)


def _sorted(found: Sequence[BoardRow], wanted: str) -> list[BoardRow]:
    words = wanted.lower().split()
    fitting = [row for row in found if all(word in _searched(row) for word in words)] if words else found
    return sorted(fitting, key=lambda row: row.need.rank)


def _searched(row: BoardRow) -> str:
    return f"{row.face.name} {row.state} {row.doing} {row.session} {row.database}".lower()


def _doing(board: Board, face: AgentFace, asks: Asks) -> str:
    """Return an agent's activity in words; empty if its state says it, or its last words say more."""
    if face.requests:
        return asks(face.requests[0])
    if face.view.activity != "waiting":
        return _at_work(face.view.activity) if face.is_running or face.need is Need.ASKS else ""
    names = [one.name for one, mark in board.awaited(face.id) if mark.label != "received"]
    return f"waits for {listed(names, 3)}" if names else "waits for a message"


def _at_work(activity: str) -> str:
    """Return an activity of ``v_agents`` as a board says it."""
    said = {"holding mail": "woken by agents again and again: write to it", "queued": "waits for a worker"}
    return said.get(activity, one_line(activity, _SAYS).replace("tool: ", "runs ", 1))


class Where(NamedTuple):
    """Whose agents a board shows."""

    name: str
    is_whole: bool


def where_of(board: Board) -> Where:
    """Return what a board of one session shows."""
    return Where(one_line(board.session.title, 24) or "this session", board.is_whole)


def where_from(everybody: Sequence[Elsewhere]) -> Where:
    """Return what a board of all sessions shows; at rest are only agents of the newest."""
    from agentmesh.store.board import SESSIONS, is_cut

    return Where(f"newest {SESSIONS} sessions", False) if is_cut(everybody) else Where("all sessions", True)


def summary(
    shown: Sequence[BoardRow],
    where: Where,
    wanted: str,
    width: int,
    *,
    folded: int = 0,
    missing: Sequence[str] = (),
) -> Line:
    """Return the title: the kinds that have room, each with its number, and what was typed to find some.

    ``folded``: how many silent agents are left out; ``missing``: databases that have not answered.
    """
    counts = Counter(row.need for row in shown)
    some = "" if where.is_whole else ", some of many"
    pieces = [Piece(" Board ", "me"), Piece(f"{where.name} · {plural(len(shown), 'agent')}{some}", "name")]
    if missing:
        pieces.append(Piece(f"  without {_few(missing)}", "warning"))
    if folded:
        pieces.append(Piece(f"  {silent_note(folded)}", "dim"))
    found = [Piece("   find: ", "dim"), Piece(f"{wanted}▏", "name")] if wanted else []
    left = width - sum(cell_len(piece.text) for piece in (*pieces, *found))
    for need in (need for need in Need if counts[need]):
        piece = Piece(f"  {counts[need]} {need.value}", _ROLES[need])
        left -= cell_len(piece.text)
        if left < 0:
            break
        pieces.append(piece)
    return (*pieces, *found)


def _few(databases: Sequence[str]) -> str:
    """Return the name of one database, or the number of several: the line has little room."""
    return databases[0] if len(databases) == 1 else f"{len(databases)} databases"


class _Figure(NamedTuple):
    """A column at the end of each line."""

    name: str
    rank: int
    """If there is no room, the column with the highest rank goes first."""
    most: int = 0
    """The most cells of a column whose texts are cut before it goes; 0 if its texts are never cut."""

    def cell(self, text: str, width: int) -> str:
        """Return a text of the column in its width."""
        return fit(text, width) if self.most else f"{text:>{width}}"


_FIGURES = (
    _Figure("changed", 6),
    _Figure("calls", 8),
    _Figure("tokens", 5),
    _Figure("cost", 4),
    _Figure("context", 7),
    _Figure("unread", 3),
    _Figure("conflicts", 2),
    _Figure("session", 1, most=30),
    _Figure("database", 0, most=16),
)
"""From left to right."""
_LEAST_CUT = 6
"""The least cells of a text that is cut."""


class Columns:
    """Lays rows out for a width: if there is no room, the least important figures go first."""

    def __init__(self, shown: Sequence[BoardRow], details: Mapping[AgentId, Details], width: int) -> None:
        self._details, self._width = details, width
        cells = [self._figures(row) for row in shown]
        widths = {one.name: max((cell_len(row[one.name]) for row in cells), default=0) for one in _FIGURES}
        self._name = min(max((cell_len(row.face.name) for row in shown), default=0), _NAME[1])
        self._name = max(min(self._name, width // 3), _NAME[0])
        self._state = max((cell_len(row.state) for row in shown), default=0)
        self._since = max((cell_len(self._age(row)) for row in shown), default=0)
        left = width - 1 - 2 - 2 - self._state - 2 - self._since - 2 - self._name - _MIN_DOING - 2
        self._kept: dict[str, int] = {}
        """The width of each figure that has room."""
        for figure in sorted(_FIGURES, key=lambda figure: figure.rank):
            wanted = widths[figure.name]
            if figure.most and left - 2 >= min(wanted, _LEAST_CUT):
                wanted = min(wanted, figure.most, left - 2)
            if wanted and left >= wanted + 2:
                left -= wanted + 2
                self._kept[figure.name] = wanted
        self._doing = _MIN_DOING + max(left, 0)

    def line(self, row: BoardRow, live: str, *, highlighted: bool, selected: bool) -> Line:
        """Return the line of a row; ``live`` is the last line of what the agent writes just now."""
        texts, kept = self._figures(row), self._kept
        shown = "".join(f"  {one.cell(texts[one.name], kept[one.name])}" for one in _FIGURES if one.name in kept)
        role = _ROLES[row.need]
        return (
            Piece("▌" if highlighted else " ", "me"),
            Piece("+" if selected else " ", "me"),
            Piece(f"{row.glyph} ", role),
            Piece(set_cell_size(row.state, self._state), role),
            Piece(f"  {self._age(row):>{self._since}}  ", "dim"),
            Piece(fit(row.face.name, self._name), "name"),
            Piece("  "),
            Piece(fit(self._does(row, live), self._doing), "" if row.need.rank < Need.IDLE.rank else "dim"),
            Piece(shown, "dim"),
        )

    def _does(self, row: BoardRow, live: str) -> str:
        said = live or (details.said if (details := self._details.get(row.face.id)) else "")
        if row.need in (Need.ASKS, Need.WAITING):
            said = ""
        return one_line(" · ".join(part for part in (row.doing, said) if part), _SAYS)

    def _age(self, row: BoardRow) -> str:
        details = self._details.get(row.face.id)
        return duration(details.since) if details else ""

    def _figures(self, row: BoardRow) -> dict[str, str]:
        view, details = row.face.view, self._details.get(row.face.id)
        left = details.context_left if details else None
        return {
            "changed": view.changed,
            "calls": plural(details.model_calls, "call") if details else "",
            "tokens": count(view.tokens) if view.tokens else "",
            "cost": money(view.cost_usd) if view.cost_usd is None or view.cost_usd else "",
            "context": f"{left:.0%} left" if left is not None else "",
            "unread": f"{view.unread} unread" if view.unread else "",
            "conflicts": plural(details.conflicts, "conflict") if details and details.conflicts else "",
            "session": row.session,
            "database": row.database,
        }


def strip(name: str, stretches: Collection[Ran], seconds: float, width: int, *, name_width: int) -> Line:
    """Return an agent's time line of the last ``seconds``: a cell is filled if the agent worked at any time in it."""
    room = max(width - name_width - 3, 1)
    cell = seconds / room
    filled = {
        n
        for one in stretches
        for n in range(max(int((seconds - one.began) / cell), 0), min(int((seconds - one.ended) / cell), room - 1) + 1)
    }
    bar = "".join("█" if n in filled else "·" for n in range(room))
    pieces = [Piece(f" {fit(name, name_width)} ", "dim")]
    begin = 0
    while begin < room:  # stretches of the same cell share a style
        end = begin
        while end < room and bar[end] == bar[begin]:
            end += 1
        pieces.append(Piece(bar[begin:end], "running" if bar[begin] == "█" else "dim"))
        begin = end
    return tuple(pieces)
