"""An index of agents by their settings: with it, settings that no agent has any more are found, and go."""

from __future__ import annotations

from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Create it, and delete the prompts of sessions that were deleted before."""
    op.create_index("agents_settings", "agents", ["settings_id"], schema="agentmesh")
    op.execute("""
        delete from agentmesh.settings s
        where not exists (select from agentmesh.agents a where a.settings_id = s.id)
    """)


def downgrade() -> None:
    """Drop it; what is gone stays gone."""
    op.drop_index("agents_settings", "agents", schema="agentmesh")
