"""Reads the details of an open board: times, last words and figures of agents, and when each of them ran lately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentmesh.domain.ids import AgentId
from agentmesh.store import board as store
from agentmesh.store import capabilities
from agentmesh.tui.session.agents_everywhere import EverybodyReader
from agentmesh.tui.session.messages import DetailsRead, LinesStreamed
from agentmesh.tui.session.state import Details

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.domain.rows import Capability
    from agentmesh.store.board import Ran
    from agentmesh.tui.session.hints import StreamedPart

MINUTES = 10
"""Length of the strip that shows when agents worked."""
_TAIL = 400
"""Characters of a text in progress that are kept, to show its last line."""


class Watched(NamedTuple):
    """The agents that an open board shows; without any, and not ``everywhere``, no board is open."""

    agents: tuple[AgentId, ...] = ()
    strips: tuple[AgentId, ...] = ()
    """Those whose last minutes are shown."""
    everywhere: bool = False
    """Whether it shows the agents of all sessions."""


class Watching:
    """Reads for one board; used by the feed's thread only."""

    def __init__(self, mesh: Mesh, post: Callable[[Message], Any], databases: Databases | None = None) -> None:
        """``databases``: all of them, if there are several."""
        self._mesh, self._post = mesh, post
        self._everybody = EverybodyReader(mesh, databases, post, self._details)
        self._watched = Watched()
        self._tails: dict[AgentId, str] = {}
        self._is_new = False
        self._learned: set[Capability] | None = None
        """What workers have found out of servers."""
        self._windows: dict[str, int | None] = {}
        """Context windows by model, as long as workers learn nothing new: a look-up may ask a server that is down."""

    def watch(self, watched: Watched) -> None:
        """Read these agents from now on."""
        self._is_new = self._is_new or (watched.strips, watched.everywhere) != self._watched[1:]
        self._watched = watched
        self._tails = {agent: tail for agent, tail in self._tails.items() if agent in watched.agents}

    def read(self, is_tick: bool) -> None:
        """Read and post the details, and at a tick what changes slowly."""
        watched, run = self._watched, self._mesh.database.run
        is_due, self._is_new = is_tick or self._is_new, False
        if not watched.agents and not watched.everywhere:
            return
        if is_due or self._learned is None:
            learned = set(run(capabilities.current, idempotent=True))
            if learned != self._learned:
                self._learned, self._windows = learned, {}
        if watched.everywhere and is_due:
            self._everybody.read(watched.agents)
        if not watched.agents:
            return
        details = {one.id: self._details(one) for one in run(store.details, watched.agents, idempotent=True)}
        ran: dict[AgentId, list[Ran]] | None = None
        if is_due:
            ran = {agent: [] for agent in watched.strips}
            for stretch in run(store.ran, watched.strips, MINUTES * 60.0, idempotent=True):
                ran[stretch.id].append(stretch)
        self._post(DetailsRead(details, ran))

    def _details(self, one: store.Detail) -> Details:
        windows = self._windows  # threads of other databases ask too
        if one.model not in windows:
            windows[one.model] = self._mesh.models.context_window(one.model, self._learned or ())
        window = windows[one.model]
        left = max(1 - one.context_tokens / window, 0.0) if window and one.context_tokens else None
        return Details(one.model_calls, one.since, last_line(one.said), left, one.conflicts)

    def stream(self, streams: Mapping[AgentId, Sequence[StreamedPart | None]]) -> None:
        """Post the last line of each text in progress."""
        lines = {}
        for agent in self._watched.agents:
            for piece in streams.get(agent, ()):
                if piece is None or piece.place == 0:
                    self._tails[agent] = ""
                if piece is not None:
                    before = self._tails.get(agent, "")  # the answer may have begun before the board opened
                    self._tails[agent] = (before + piece.text)[-_TAIL:]
                lines[agent] = last_line(self._tails[agent])
        if lines:
            self._post(LinesStreamed(lines))


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
