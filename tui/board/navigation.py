"""Which agent comes into view: its neighbours, one that was picked or needs a person, a task's sub-agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import Kind
from agentmesh.tui.board import rotation
from agentmesh.tui.board.attention import needs_person
from agentmesh.tui.commands.calls import Call
from agentmesh.tui.input.composer import Composer
from agentmesh.tui.screen_layout import Layout
from agentmesh.tui.session.state import AgentFace
from agentmesh.tui.theme import ROLES

if TYPE_CHECKING:
    from agentmesh.tui.board.tree import SideTree
    from agentmesh.tui.conversation.task_call import TaskCallView
    from agentmesh.tui.widgets.chooser import Choice

_NOBODY = {
    "parent": "The root has no parent",
    "child": "It has no children",
    "previous": "It has no siblings",
    "next": "It has no siblings",
}
_HOW_OVER = {Kind.ASSISTANT: "task done", Kind.ERROR: "task failed", Kind.EVENT: "task interrupted"}
"""By the row that its last turn ended with."""


class Going(Layout):
    """What the keys do that lead to other agents. The chooser is imported when it opens."""

    def action_rotate(self, direction: rotation.Direction) -> None:
        """Bring a neighbour into view."""
        if self.board is None or self.in_view is None:
            return
        towards = rotation.rotate(self.board, self.in_view, direction)
        if towards == self.in_view:
            self.say(_NOBODY[direction], "$dim")
        else:
            self.go(towards)

    def action_pick_agent(self) -> None:
        """Let a person pick an agent."""
        if self.board is None or self.in_view is None:
            return
        from agentmesh.tui.widgets.chooser import Chooser

        board = self.board
        faces = board.subtree(board.session.root_id)
        choices = [_choice(face, is_over=face.id in board.resting) for face in faces]
        title = "Agents" if board.is_whole else "Agents: some of many, the others by their whole name or id"
        beyond = (lambda who: self._ask(Call("agents", (who,), who))) if not board.is_whole else None

        def picked(agent_id: AgentId | None) -> None:
            if agent_id is not None:
                self.go(agent_id, board.faces[agent_id].name)

        self.app.push_screen(Chooser(title, choices, highlighted=self.in_view, beyond=beyond), picked)

    def action_next_need(self) -> None:
        """Go to the next agent that cannot go on without a person."""
        faces = list(self.board.faces.values()) if self.board else []
        here = next((n for n, face in enumerate(faces) if face.id == self.in_view), 0)
        needing = [face for face in (*faces[here + 1 :], *faces[:here]) if needs_person(face)]
        if needing:
            self.go(needing[0].id)
        else:
            self.say("No other agent needs you", "$dim")

    def action_enter_task(self) -> None:
        """Go to the sub-agent of a task."""
        from agentmesh.tui.conversation.task_call import TaskCallView, task_to_enter

        shown = self.views.current
        if task := task_to_enter(shown.query_children(TaskCallView)) if shown else None:
            task.action_enter()
        else:
            self.say("There is no task here", "$dim")

    def on_task_call_view_entered(self, event: TaskCallView.Entered) -> None:
        """Go to its sub-agent. (Named as Textual finds it: tasks are imported with the session.)"""
        event.stop()
        self.go(event.agent_id)

    def action_toggle_tree(self) -> None:
        """Switch the tree of all agents on or off, between the two with the sub-agents whose task is over."""
        if self.board:
            if self._tree is None:
                from agentmesh.tui.board.tree import SideTree

                self._tree = SideTree()
                self.query_one("#body").mount(self._tree)
            self._tree.turn(self.board)
        self.call_after_refresh(self._refresh_lines)

    def on_side_tree_chosen(self, event: SideTree.Chosen) -> None:
        """Go to an agent of the tree. (Named as Textual finds it: the tree is imported when it is wanted.)"""
        event.stop()
        self.go(event.agent_id)

    def _ask(self, call: Call) -> None:
        """Ask for something on behalf of the agent in view."""
        if self.in_view is not None:
            self.post_message(Composer.Asked(call, self.in_view))


def _choice(face: AgentFace, *, is_over: bool) -> Choice[AgentId]:
    """Return an agent as one of those to pick; ``is_over``: its task has ended."""
    from agentmesh.tui.widgets.chooser import Choice

    state = face.activity if face.is_running and face.activity else face.mark.label
    role = "dim" if is_over else "warning" if face.requests else face.mark.label
    before = Content.assemble("  " * face.view.depth, (f"{'!' if face.requests else face.mark.glyph} ", ROLES[role]))
    if is_over and face.ended_with and not face.is_dead:
        state = _HOW_OVER.get(face.ended_with, state)
    parts = [state]
    parts += [f"{face.view.unread} unread"] if face.view.unread else []
    return Choice(face.id, face.name, before, ", ".join(parts), is_dim=is_over)
