"""What the first rows of an agent begin with: what it inherited from its parent, folded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.tui.conversation.entries import Inherited

if TYPE_CHECKING:
    from agentmesh.tui.session.messages import RowsArrived
    from agentmesh.tui.session.state import AgentFace, Board


def fold_of(rows: RowsArrived, face: AgentFace | None, board: Board | None) -> Inherited | None:
    """Return the inherited rows as one entry; None if there are none."""
    if not rows.inherited:
        return None
    parent = board.get(face.parent) if board and face and face.parent else None
    source = parent.name if parent else "its parent"
    return Inherited("inherited", source, rows.inherited_count, tuple(rows.inherited))
