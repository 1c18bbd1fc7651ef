"""The hints since the last read: which agents changed, and what their models write."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple
from uuid import UUID

from agentmesh.domain import jsontext
from agentmesh.domain.ids import AgentId

_LIVE = "live "


class Piece(NamedTuple):
    """A part of an answer in progress."""

    after: int
    """The agent's newest own row when its model was called; the answer's row has a higher seq."""
    place: int
    """How many characters of the answer came before this piece."""
    text: str
    is_repeated: bool = False
    """Whether it was told before, and is told again to this screen alone."""


class HintBatch:
    """Hints gathered, in their order per agent."""

    def __init__(self) -> None:
        self.everything = False
        """Anything may have changed (start, reconnect)."""
        self.board = False
        """An agent, a wait or the session changed."""
        self.details = False
        """An open board shows other agents than before."""
        self.streams: dict[AgentId, list[Piece | None]] = {}
        """Per agent: pieces of live text, and None for each change of its rows or state between them."""

    def __bool__(self) -> bool:
        return self.everything or self.board or self.details or bool(self.streams)


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
        with self._lock:
            if pieces is not None:
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


def _live(payload: str) -> dict[AgentId, Piece]:
    """Return live text by agent. A malformed payload gives nothing: the rows come anyway."""
    try:
        pieces = jsontext.parse(payload[len(_LIVE) :])
    except ValueError:
        return {}
    if not isinstance(pieces, dict):
        return {}
    found = ((_agent(name), _piece(said)) for name, said in pieces.items())
    return {agent: piece for agent, piece in found if agent and piece}


def _piece(said: Any) -> Piece | None:
    match said:
        case [int(after), int(place), str(text)]:
            return Piece(after, place, text)
        case _:
            return None
