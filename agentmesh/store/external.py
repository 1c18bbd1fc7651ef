"""External agents: those whose turns run outside, such as in the client of the MCP server.

A client that joins as one is registered like a worker that runs nobody. Its lock and its heartbeat show that it is
alive, its verbs carry a lease, and if it dies, the sweep of dead workers makes the agent idle.
"""

from __future__ import annotations

from uuid import UUID

from psycopg import Connection

from agentmesh.domain.ids import AgentId, SessionId, WorkerId
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, scalar


def guest(conn: Connection, session: SessionId, name: str) -> AgentId:
    """Return an idle external agent with this name below the session's root; make one if there is none.

    Raise a LimitReached, BadName, ReservedName, UnknownSession or SessionEnded if it is refused.
    """
    return AgentId(scalar(conn, statement("external.guest"), {"session": session, "name": storable(name)}, UUID))


def join(conn: Connection, worker: WorkerId, agent: AgentId) -> Lease:
    """Make the agent running and this worker's; raise AgentBusy if another client has joined as it, or DeadAgent."""
    epoch = scalar(conn, statement("external.join"), {"worker": worker, "agent": agent}, int)
    return Lease(agent, worker, epoch)


def leave_wait(conn: Connection, lease: Lease) -> bool:
    """End the agent's wait without a result, its mail unread; return whether it was in one."""
    return scalar(conn, statement("external.leave_wait"), {"waiter": lease.agent_id, **caller(lease)}, bool)
