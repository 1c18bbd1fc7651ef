"""How an agent's last turn ended, and whether a person has seen it.

A board shows first who failed and who is done. Of a session with 10,000 agents that has to be found by an index.
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"


_BEFORE = """
create or replace function agentmesh.agent_is_sound(a agentmesh.agents) returns boolean
language plpgsql immutable as $$
-- One function in place of a CHECK for each line: PostgreSQL reads and plans every CHECK anew for each statement
-- that writes the table, which was half of what a step's write of its agent cost.
begin
  return a.status in ('running', 'idle', 'dead')
    and (a.status = 'dead') = (a.died_at is not null)
    and (a.status = 'dead' or (a.reaped_at is null and a.killed_by is null))
    and (a.status = 'running' or a.worker_id is null)
    and a.turn >= 0 and a.started_turn <= a.turn                               -- a turn starts once
    and (a.parent_id is null) = (a.depth = 0) and a.depth >= 0
    and (a.parent_id is null) = (a.name = 'root')
    and (a.parent_id is null) = (a.forked_at is null) and coalesce(a.forked_at >= 0, true)
    and coalesce(not a.clean or a.forked_at = 0, true)                         -- the clean inherit nothing
    and a.name ~ '^[a-z0-9][a-z0-9_.-]{0,31}$' and a.name not in ('parent', 'user', 'all');
end $$;
"""


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the columns, and with them their index."""
    op.drop_index("sessions_open", schema="agentmesh")
    op.execute(_BEFORE)
    op.drop_column("agents", "unseen", schema="agentmesh")
    op.drop_column("agents", "ended_as", schema="agentmesh")
