"""Where the newest turn of an agent began, and the newest merge into its files since."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.domain.workspaces import MergeState, Snapshot
from agentmesh.store import merges, snapshots, transcript
from agentmesh.store import workspaces as rows
from agentmesh.store.tx import Database

_MESSAGES: Final = (Kind.USER, Kind.MAIL)


class Turn(NamedTuple):
    """The newest turn of an agent that its model is still sent."""

    start: int | None
    """Its first row; None if there is no turn."""
    rows: frozenset[int]
    """All its rows that are sent. Those of turns that were taken back are not."""


def newest(database: Database, agent: AgentId) -> Turn:
    """Return an agent's newest turn."""
    sent = [row for row in database.run(transcript.context, agent, idempotent=True) if row.agent_id == agent]
    start = next((row.seq for row in reversed(sent) if row.kind in _MESSAGES and _begins_turn(database, row)), None)
    return Turn(start, frozenset(row.seq for row in sent if start is not None and row.seq >= start))


def merged_since(database: Database, agent: AgentId, turn: Turn) -> Snapshot | None:
    """Return the newest merge into the agent's files that a person made after a turn, if the agent did nothing since.

    The snapshot is returned, if the files of the merge are still there.
    """
    workspace = database.run(rows.of_agent, agent, idempotent=True)
    before = database.run(snapshots.newest_before, agent, turn.start, idempotent=True) if turn.start else None
    after = before.id if before else 0
    by_person = {
        one.id
        for one in database.run(merges.into, workspace.id, after, idempotent=True)
        if one.by_agent is None and one.target_agent == agent and one.state is MergeState.DONE
    }
    newest_merge = None
    for one in database.run(snapshots.since, workspace.id, after, idempotent=True):
        if one.merge_id in by_person:
            newest_merge = one
        elif one.agent_id == agent and one.seq in turn.rows:
            newest_merge = None
    return newest_merge


def _begins_turn(database: Database, row: Row) -> bool:
    """Whether a message came at the beginning of a turn: nothing before it still waits for the model's answer."""
    if row.content.get("correction"):  # it came with the answer before it, in the middle of a turn
        return False
    if row.content.get("quiet"):  # an idle agent was told of a merge or a halt: no turn began by it
        return False
    before = database.run(transcript.own, row.agent_id, max(row.seq - 2, 0), 1, idempotent=True) if row.seq > 1 else []
    if not before or before[0].seq >= row.seq:
        return True
    last = before[0]
    if last.content.get("quiet"):
        return True
    if last.kind == Kind.ASSISTANT:
        return not last.content.get("calls")
    return last.kind not in (Kind.TOOL_RESULT, *_MESSAGES)
