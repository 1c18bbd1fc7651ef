"""The tree of all agents beside the scrollback: their children, and how each agent stands."""

from __future__ import annotations

from textual import on
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from agentmesh.domain.activity import fitted
from agentmesh.domain.folded_agents import silent_note
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import shortened_name
from agentmesh.tui.session.state import AgentFace, Board
from agentmesh.tui.theme import ROLES
from agentmesh.tui.widgets.message import message

_ROOM = 28
"""Cells of a line, beside the scroll bar; its width is in screen.tcss."""


class SideTree(OptionList, can_focus=False):
    """One line per agent; a click shows it. It takes no focus: keys go on to the input."""

    @message
    class Chosen(Message):
        """A person wants to see an agent."""

        agent_id: AgentId

    def __init__(self) -> None:
        super().__init__(id="side-tree", markup=False)
        self._shown: list[Content] = []
        self._ids: list[AgentId | None] = []
        self._with_resting = False

    def turn(self, board: Board) -> None:
        """Switch from no tree to the tree without finished and silent agents, then to the tree with them, if any."""
        everybody = self.display and not self._with_resting and bool(board.folded & board.faces.keys())
        self._with_resting = everybody
        self.set_class(everybody or not self.display, "-on")

    def show(self, board: Board, in_view: AgentId) -> None:
        """Show the agents; redraw only lines that changed."""
        lines: list[tuple[AgentFace, str]] = []
        hidden = board.folded - {*board.lineage(in_view)} if not self._with_resting else frozenset()
        _walk(board, board.root, "", "", lines, hidden)
        shown = [_line(face, guide, face.id == in_view, face.id in board.resting) for face, guide in lines]
        ids: list[AgentId | None] = [face.id for face, _ in lines]
        if note := silent_note(len(board.silent & hidden)):
            shown.append(Content.styled(note, "$dim"))
            ids.append(None)
        if ids != self._ids:
            self.clear_options()
            self.add_options(Option(line, disabled=agent is None) for line, agent in zip(shown, ids, strict=True))
        else:
            for n, (old, new) in enumerate(zip(self._shown, shown, strict=True)):
                if not old.is_same(new):
                    self.replace_option_prompt_at_index(n, new)
        self._shown, self._ids = shown, ids
        self.highlighted = ids.index(in_view) if in_view in ids else None

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if agent := self._ids[event.option_index]:
            self.post_message(self.Chosen(agent))


def _walk(
    board: Board,
    face: AgentFace,
    indent: str,
    branch: str,
    lines: list[tuple[AgentFace, str]],
    hidden: frozenset[AgentId],
) -> None:
    lines.append((face, indent + branch))
    children = [child for child in board.children(face.id) if child.id not in hidden]
    deeper = indent + {"": "", "├ ": "│ ", "└ ": "  "}[branch]
    for child in children:
        _walk(board, child, deeper, "└ " if child is children[-1] else "├ ", lines, hidden)


def _line(face: AgentFace, guide: str, in_view: bool, is_over: bool) -> Content:
    activity = f" {fitted(face.activity, 40)}" if face.is_running and face.activity else ""
    mark = ("! ", ROLES["warning"]) if face.requests else (f"{face.mark.glyph} ", ROLES[face.mark.label])
    state = " task over" if is_over and not face.is_dead else f" {face.mark.label}"
    return Content.assemble(
        (guide, "$dim"),
        (mark[0], "$dim" if is_over else mark[1]),
        (
            shortened_name(face.name, _ROOM - len(guide) - len(mark[0])),
            "bold" if in_view else "$dim" if is_over else "",
        ),
        (activity or state, ROLES["warning"] if face.requests else "$dim"),
    )
