"""Where the conversation begins that a fork inherits, if it is not all that its parent had."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column. Its domain is looked at only where it is set; a CHECK would be at each write of an agent."""
    op.execute("create type agentmesh.place_in_transcript as (agent_id uuid, after bigint)")
    op.execute(
        "create domain agentmesh.beginning as agentmesh.place_in_transcript"
        " check (value is null or ((value).agent_id is not null and coalesce((value).after >= 0, false)))"
    )
    op.execute("alter table agentmesh.agents add column inherits agentmesh.beginning")


def downgrade() -> None:
    """Drop the column: such forks inherit all that their parents had."""
    op.drop_column("agents", "inherits", schema="agentmesh")
    op.execute("drop domain agentmesh.beginning")
    op.execute("drop type agentmesh.place_in_transcript")
