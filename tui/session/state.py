"""The state of a session as immutable classes. The feed makes them; everything else reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.domain.attention import Need
from agentmesh.domain.folded_agents import resting, silent
from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.tui.session.tasks import Task

if TYPE_CHECKING:
    from agentmesh.domain.rows import AgentView, Request, Session


class Mark(Enum):
    """How an agent stands, as a glyph and a word; colour is never the only sign."""

    RECEIVED = ("✓", "received")
    """Awaited, and its message has reached the waiter."""
    RUNNING = ("◐", "running")
    DONE = ("●", "done")
    """Idle, and a person has not looked at the end of the turn that they asked for."""
    IDLE = ("○", "idle")
    FAILED = ("▲", "failed")
    OUT_OF_BUDGET = ("▣", "out of budget")
    INTERRUPTED = ("⏸", "interrupted")
    DEAD = ("✗", "dead")

    @property
    def glyph(self) -> str:
        """One cell wide."""
        return self.value[0]

    @property
    def label(self) -> str:
        """The word beside the glyph."""
        return self.value[1]


_MARKS: Mapping[AgentStatus, Mark] = MappingProxyType({AgentStatus.RUNNING: Mark.RUNNING, AgentStatus.DEAD: Mark.DEAD})
_ENDS: Mapping[str, Mark] = MappingProxyType(
    {mark.label: mark for mark in (Mark.FAILED, Mark.OUT_OF_BUDGET, Mark.INTERRUPTED)}
)
"""How the last turn of an idle agent ended, if not well, by the activity of ``v_agents``."""


class Waiting(NamedTuple):
    """The wait that an agent is in."""

    targets: tuple[AgentId, ...] | None
    """In the order of the call, without names that cannot be resolved; None: it waits for a message from anyone."""
    received: frozenset[AgentId]
    """The targets whose message the waiter has not read yet; automatic reports do not count."""
    left: float
    """Seconds until it times out, when the board was read; may be negative."""


class Pending(NamedTuple):
    """A message of the user that the agent has not read. It can still be taken back."""

    id: MailId
    text: str


class Details(NamedTuple):
    """Details of an agent on a board, beside its state."""

    model_calls: int
    since: float
    """Seconds that it had stood as it did when this was read."""
    said: str
    """The last line of what it wrote."""
    context_left: float | None
    """The share of the model's window that is free; None if it or the window is not known."""
    conflicts: int = 0
    """How many files of its own tree conflict with another agent's."""


class AgentFace(NamedTuple):
    """One agent as the screen shows it."""

    view: AgentView
    """Name, status, activity, unread, model, tool_calls, tokens, cost_usd, ... as in ``v_agents``."""
    parent: AgentId | None
    """The nearest ancestor on the board; None for the root."""
    wait: Waiting | None = None
    running_for: float | None = None
    """Seconds that it had been running when the board was read; None if it is not running."""
    ended_with: Kind | None = None
    """Kind of the row that its last turn ended with: assistant, error, event (interrupted); None before the first."""
    capturing: bool = False
    """Whether a capture is open: typed text is kept from every model."""
    pending: tuple[Pending, ...] = ()
    requests: tuple[Request, ...] = ()
    """Its unanswered requests to a person, oldest first."""

    @property
    def id(self) -> AgentId:
        """The agent's id."""
        return self.view.id

    @property
    def name(self) -> str:
        """The agent's name; the database allows safe characters only."""
        return self.view.name

    @property
    def status(self) -> AgentStatus:
        """running, idle or dead."""
        return self.view.status

    @property
    def is_dead(self) -> bool:
        """Whether it was killed: scrollback frozen, no input."""
        return self.view.status == AgentStatus.DEAD

    @property
    def is_running(self) -> bool:
        """Whether a turn runs or is queued, or it is inside a wait."""
        return self.view.status == AgentStatus.RUNNING

    @property
    def can_retry(self) -> bool:
        """Whether its last turn failed, and may run again."""
        return self.status == AgentStatus.IDLE and self.ended_with == Kind.ERROR and not self.view.external

    @property
    def activity(self) -> str:
        """Its activity now. An open request comes first, because the stored activity is a moment older."""
        if not self.requests:
            return self.view.activity
        first = self.requests[0]
        return "asking" if first.kind == "question" else f"needs approval: {first.tool}"

    @property
    def mark(self) -> Mark:
        """Its own mark; ``Board.awaited`` has the mark that a waiter sees."""
        if self.view.status != AgentStatus.IDLE:
            return _MARKS[self.view.status]
        return _ENDS.get(self.view.activity, Mark.DONE if self.view.unseen else Mark.IDLE)

    @property
    def need(self) -> Need:
        """Its need of a person."""
        view = self.view
        return Need.of(view.status, view.activity, unseen=view.unseen, asks=bool(self.requests))


class Board(NamedTuple):
    """The agents of a session at one instant, without the reaped; the root is always there. Immutable.

    The agent in view is not part of it. It has only some agents of a large session: ``board.agents`` in SQL picks them.
    """

    session: Session
    """As read with the agents: its title and permission mode change."""
    faces: Mapping[AgentId, AgentFace]
    """In the order of rotation: oldest first."""
    read_at: float
    """``time.monotonic()`` of the read; durations on the board count from there."""
    tasks: tuple[Task, ...] = ()
    """The tasks of every step that has a running task, in the order of the calls."""
    resting: frozenset[AgentId] = frozenset()
    """Sub-agents whose task is over: on the board, but in no rotation."""
    below: Mapping[AgentId, Sequence[AgentFace]] = MappingProxyType({})
    """The children of each that has any, oldest first."""
    at_work: int = 0
    """How many agents of the whole session run; 0 if that was not counted."""
    is_whole: bool = True
    """Whether these are all agents of the session."""
    silent: frozenset[AgentId] = frozenset()
    """Silent agents that need no person, without those at rest: on the board, but in no rotation."""

    @classmethod
    def of(
        cls,
        session: Session,
        agents: Iterable[AgentFace],
        read_at: float,
        tasks: Iterable[Task] = (),
        *,
        at_work: int = 0,
        is_whole: bool = True,
    ) -> Board:
        """Make a board from agents, oldest first, with the reaped among them; fill in each ``parent``."""
        everybody = {face.id: face for face in agents}
        faces = {
            face.id: face._replace(parent=_shown_ancestor(face, everybody))
            for face in everybody.values()
            if _is_shown(face.view)
        }
        below: dict[AgentId, list[AgentFace]] = {}
        for face in faces.values():
            if face.parent is not None:
                below.setdefault(face.parent, []).append(face)
        at_rest = resting([face.view for face in everybody.values()])
        asking = {face.id for face in everybody.values() if face.requests}
        quiet = silent([face.view for face in everybody.values()], asking) - at_rest
        return cls(
            session,
            MappingProxyType(faces),
            read_at,
            tuple(tasks),
            at_rest,
            MappingProxyType(below),
            at_work,
            is_whole,
            quiet,
        )

    @property
    def root(self) -> AgentFace:
        """The session's root; it stays on the board even after it was reaped."""
        return self.faces[self.session.root_id]

    def get(self, agent: AgentId) -> AgentFace | None:
        """Return the agent's face, None when it has been reaped or is not of this session."""
        return self.faces.get(agent)

    def named(self, who: str) -> AgentFace | None:
        """Return the agent with this name, path from the root on, or full id."""
        name = who.rpartition("/")[2]
        face = next((face for face in self.faces.values() if name == face.name or who == str(face.id)), None)
        return face if face is None or "/" not in who or who == self._path(face) else None

    def starting(self, digits: str) -> AgentFace | None:
        """Return the one agent whose id begins with these digits, None if there is no such agent or several."""
        found = [face for face in self.faces.values() if str(face.id).startswith(digits)]
        return found[0] if len(found) == 1 else None

    def children(self, agent: AgentId) -> list[AgentFace]:
        """Return the children on the board, oldest first."""
        return list(self.below.get(agent, ()))

    def in_rotation(self, agent: AgentId) -> list[AgentFace]:
        """Return the children that keys lead to: all except sub-agents whose task is over, and silent ones."""
        return [face for face in self.children(agent) if face.id not in self.folded]

    @property
    def folded(self) -> frozenset[AgentId]:
        """The agents that lists leave out."""
        return self.resting | self.silent

    def lineage(self, agent: AgentId) -> list[AgentId]:
        """Return the agent and its ancestors on the board."""
        face = self.get(agent)
        return [] if face is None else [agent, *(self.lineage(face.parent) if face.parent else ())]

    def _path(self, face: AgentFace) -> str:
        return "/".join(self.faces[agent].name for agent in reversed(self.lineage(face.id)))

    def tasks_of(self, agent: AgentId) -> list[Task]:
        """Return the tasks of the agent's step in progress, in the order of its calls; empty if none runs."""
        return [task for task in self.tasks if task.parent == agent]

    def subtree(self, agent: AgentId) -> list[AgentFace]:
        """Return the agent and all its descendants on the board, each before its children.

        Siblings are oldest first; sub-agents whose task is over, and silent ones, come after the others.
        """
        face = self.get(agent)
        if face is None:
            return []
        children = sorted(self.children(agent), key=lambda child: child.id in self.folded)
        return [face, *(below for child in children for below in self.subtree(child.id))]

    def awaited(self, agent: AgentId) -> list[tuple[AgentFace, Mark]]:
        """Return the agents that this one waits for, each with its mark; empty if it is in no fan-in wait."""
        face = self.get(agent)
        wait = face.wait if face else None
        if wait is None or wait.targets is None:
            return []
        known = [self.faces[target] for target in wait.targets if target in self.faces]
        return [(one, Mark.RECEIVED if one.id in wait.received else one.mark) for one in known]

    @property
    def requests(self) -> list[Request]:
        """The open requests of all agents, oldest first."""
        found = [request for face in self.faces.values() for request in face.requests]
        return sorted(found, key=lambda request: (request.asked_at, request.id))

    @property
    def running(self) -> list[AgentFace]:
        """The running agents, without external ones."""
        return [face for face in self.faces.values() if face.is_running and not face.view.external]

    @property
    def working(self) -> int:
        """How many agents of the session run, on the board or not."""
        return max(self.at_work, len(self.running))


def _shown_ancestor(face: AgentFace, everybody: Mapping[AgentId, AgentFace]) -> AgentId | None:
    """Return the nearest ancestor that has not been reaped, or the root."""
    above = face.view.parent_id
    while above is not None and not _is_shown(everybody[above].view):
        above = everybody[above].view.parent_id
    return above


def _is_shown(agent: AgentView) -> bool:
    """Return whether it is on the board: every agent that is not reaped, and the root."""
    return agent.reaped_at is None or agent.parent_id is None
