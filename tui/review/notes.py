"""A person's notes on changes, and the one message that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentmesh.domain.ids import AgentId
from agentmesh.tui.review.lines import Anchor, NotePlace


class Notes:
    """The notes on the changes of each agent that was reviewed; they stay until they are sent."""

    def __init__(self) -> None:
        self._notes: dict[AgentId, dict[Anchor, str]] = {}

    def of(self, agent: AgentId) -> Mapping[Anchor, str]:
        """Return the notes for an agent."""
        return self._notes.get(agent, {})

    def put(self, agent: AgentId, anchor: Anchor, text: str) -> None:
        """Keep a note; an empty text removes it."""
        notes = self._notes.setdefault(agent, {})
        if text.strip():
            notes[anchor] = text.strip()
        else:
            notes.pop(anchor, None)

    def clear(self, agent: AgentId) -> None:
        """Forget the notes for an agent: they are sent."""
        self._notes.pop(agent, None)


def message(agent: str, notes: Mapping[Anchor, str], where: Sequence[tuple[Anchor, NotePlace]]) -> str:
    """Return the message for an agent of this name; notes whose place is not known any more come last."""
    known = {anchor for anchor, _ in where}
    parts = [_part(agent, place, notes[anchor]) for anchor, place in where]
    parts += [text for anchor, text in notes.items() if anchor not in known]
    return "\n\n".join(["Notes on changes:", *parts])


def _part(agent: str, place: NotePlace, text: str) -> str:
    head = place.path if place.number is None else f"{place.path}:{place.number}"
    head += " (removed)" if place.quoted.startswith("-") else ""
    head += f" (changed by {place.author})" if place.author != agent else ""
    quoted = f"> {place.quoted}\n" if place.quoted else ""
    return f"{head}\n{quoted}{text}"
