"""The one wait that a member may be in: begin, look, leave. A reply that got lost on the way is found again."""

from __future__ import annotations

import threading
from typing import Any

from agentmesh.app.recorded_wait import RecordedWait
from agentmesh.domain.errors import DatabaseUnreachable, WaitBusy
from agentmesh.domain.log import logger
from agentmesh.domain.states import WaitOutcome
from agentmesh.mcp import tools
from agentmesh.mcp.member import Member
from agentmesh.store import external, waits
from agentmesh.tools.wait import WaitArgs

LOG = logger(__name__)

_LOST = "The wait was ended from outside; no message was taken. Wait again."


class MemberWait:
    """At most one wait at a time: the database refuses another."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._lock = threading.Lock()
        self._forsaken = False
        """Nobody follows the wait any more, but it may still be registered."""
        self._recorded: RecordedWait | None = None
        """Finds a result if the database's reply was lost."""
        self._doubted: WaitArgs | None = None
        """The arguments of the wait, while it is unknown whether the database began it."""
        member.with_each_beat(self._clear)

    def begin(self, args: WaitArgs) -> dict[str, Any] | None:
        """Begin the wait; return the result if it is over at once. If the reply is lost, ``look`` goes on."""
        self._clear()
        with self._lock:
            self._recorded = RecordedWait(self._member.mesh.database, self._member.agent_id)
            self._doubted = None
            try:
                return tools.begin_wait(self._member, args)
            except DatabaseUnreachable as error:
                LOG.warning("a wait may have begun: %s", error)
                self._doubted = args
                return None

    def look(self, final: WaitOutcome | None = None) -> dict[str, Any] | None:
        """Return the result if the wait is over (with ``final`` in any case), None while it goes on."""
        run, agent = self._member.mesh.database.run, self._member.agent_id
        result = self._member.act(lambda lease: run(waits.wait_take, agent, final, lease))
        if result is not None:
            return result
        if run(waits.registered, agent, idempotent=True) is not None:
            self._doubted = None
            return None
        if self._recorded and (recorded := self._recorded.result()):
            return recorded
        if self._doubted:
            return self._begin_again(self._doubted)
        self._leave()  # refused if the agent is dead
        return {"outcome": WaitOutcome.INTERRUPTED, "results": [], "note": _LOST}

    def _begin_again(self, args: WaitArgs) -> dict[str, Any] | None:
        """Begin a wait that the database did not begin, or is still beginning."""
        try:
            result = tools.begin_wait(self._member, args)
        except WaitBusy:  # by the first call, which the database went on with after its connection was lost
            result = None
        self._doubted = None
        return result

    def words(self, args: WaitArgs) -> str:
        """Return how far the wait is."""
        if args.from_agents is None:
            return "waiting for a message"
        count = self._member.mesh.database.run(waits.still_open, self._member.agent_id, idempotent=True)
        return f"waiting for {count} of {len(args.from_agents)} agents"

    def forsake(self) -> None:
        """End the wait without a result, now or once the database answers again; its mail stays unread."""
        self._forsaken = True
        self._clear()

    def _clear(self) -> None:
        with self._lock:
            if self._forsaken:
                self._leave()
                self._forsaken = False

    def _leave(self) -> None:
        run = self._member.mesh.database.run
        self._member.act(lambda lease: run(external.leave_wait, lease, idempotent=True))
