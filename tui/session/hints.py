"""The hints since the last read: which agents changed, and what their models write."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from agentmesh.domain import jsontext
from agentmesh.domain.ids import AgentId
from agentmesh.store.status import OUTPUT
from agentmesh.tui.session.rows import call_key

_LIVE = "live "


class StreamedPart(NamedTuple):
    """A part of an answer in progress."""

    after: int
    """The agent's newest own row when its model was called; the answer's row has a higher seq."""
    place: int
    """How many characters of the answer came before this piece."""
    text: str
    is_repeated: bool = False
    """Whether it was told before, and is told again to this screen alone."""


class CallOutput(NamedTuple):
    """The newest lines that a running call has written."""

    key: str
    """The key of the call's entry."""
    text: str


class HintBatch:
    """Hints gathered, in their order per agent."""

    def __init__(self) -> None:
        self.everything = False
        """Anything may have changed (start, reconnect)."""
        self.board = False
        """An agent, a wait or the session changed."""
        self.details = False
        """An open board shows other agents than before."""
        self.streams: dict[AgentId, list[StreamedPart | None]] = {}
        """Per agent: pieces of live text, and None for each change of its rows or state between them."""
        self.outputs: dict[AgentId, CallOutput] = {}
        """Per agent: the last output of its running call."""

    def __bool__(self) -> bool:
        return self.everything or self.board or self.details or bool(self.streams) or bool(self.outputs)


class Hints:
    """Gathers hints for one reader; ``wake`` is set with each."""

    def __init__(self, own: str = "") -> None:
        """``own`` is the channel of this screen alone."""
        self._own = own
        self.wake = threading.Event()
        self._lock = threading.Lock()
        self._batch = HintBatch()

    def receive(self, channel: str, payload: str) -> None:
        """Take one payload. An unknown one means that anything may have changed."""
        what, _, rest = payload.partition(" ")
        pieces = _live(payload) if payload.startswith(_LIVE) else None
        outputs = _outputs(payload) if payload.startswith(OUTPUT) else None
        with self._lock:
            if outputs is not None:
                self._batch.outputs |= outputs
            elif pieces is not None:
                for agent, piece in pieces.items():
                    heard = piece._replace(is_repeated=channel == self._own)
                    self._batch.streams.setdefault(agent, []).append(heard)
            elif what in ("reaped", "ended", "session"):
                self._batch.board = True
            elif agents := _agents(rest):
                self._batch.board = True
                for agent in agents:
                    self._batch.streams.setdefault(agent, []).append(None)
            else:
                self._batch.everything = True
        self.wake.set()

    def everything(self) -> None:
        """Note that anything may have changed."""
        with self._lock:
            self._batch.everything = True
        self.wake.set()

    def board(self) -> None:
        """Note that the board must be read again."""
        with self._lock:
            self._batch.board = True
        self.wake.set()

    def details(self) -> None:
        """Note that an open board shows other agents than before."""
        with self._lock:
            self._batch.details = True
        self.wake.set()

    @property
    def pending(self) -> bool:
        """Whether there are hints."""
        return bool(self._batch)

    def take(self) -> HintBatch:
        """Return the hints since the last call."""
        with self._lock:
            batch, self._batch = self._batch, HintBatch()
        return batch


def _agents(text: str) -> list[AgentId]:
    """Return the agents that a hint names; an empty list if it names anything else."""
    found = [agent for part in text.split(" ") if (agent := _agent(part))]
    return found if len(found) == text.count(" ") + 1 else []


def _agent(text: str) -> AgentId | None:
    try:
        return AgentId(UUID(text))
    except ValueError:
        return None


def _live(payload: str) -> dict[AgentId, StreamedPart]:
    """Return live text by agent. A malformed payload gives nothing: the rows come anyway."""
    return {agent: piece for agent, said in _by_agent(payload, _LIVE) if (piece := _piece(said))}


def _outputs(payload: str) -> dict[AgentId, CallOutput]:
    """Return the last output of running calls by agent; a malformed payload gives none."""
    found = ((agent, _piece(said)) for agent, said in _by_agent(payload, OUTPUT))
    return {agent: CallOutput(call_key(piece.after, piece.place), piece.text) for agent, piece in found if piece}


def _by_agent(payload: str, begins: str) -> Iterator[tuple[AgentId, Any]]:
    """Yield the entries of a payload whose names are ids of agents."""
    try:
        entries = jsontext.parse(payload[len(begins) :])
    except ValueError:
        return
    if isinstance(entries, dict):
        yield from ((agent, said) for name, said in entries.items() if (agent := _agent(name)))


def _piece(said: Any) -> StreamedPart | None:
    match said:
        case [int(after), int(place), str(text)]:
            return StreamedPart(after, place, text)
        case _:
            return None
