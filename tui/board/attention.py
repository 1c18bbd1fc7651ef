"""Which agents cannot go on without a person, and how the status line says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.domain.figures import listed

if TYPE_CHECKING:
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import AgentFace, Board


def needs_person(face: AgentFace) -> bool:
    """Whether the agent cannot go on without a person: it asks, or agents woke it too often."""
    return bool(face.requests) or (not face.is_dead and face.view.activity == "holding mail")


def needs_text(board: Board, agent: AgentId, answers: str) -> str:
    """Return how many agents need the person, with their names; the one in view counts only if it asks."""
    faces = [face for face in board.faces.values() if face.requests or (needs_person(face) and face.id != agent)]
    if not faces:
        return ""
    number = sum(len(face.requests) or 1 for face in faces)
    key = f" ({answers})" if answers and any(face.requests for face in faces) else ""
    return f"{number} need{'s' * (number == 1)} you: {listed([face.name for face in faces], 3)}{key}"
