"""The settings that an agent had while it worked: its session's deletion forgets them too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Add the column. Those from before that no agent has now are nobody's: they go."""
    op.add_column("agents", sa.Column("former_settings", sa.ARRAY(sa.Text)), schema="agentmesh")
    op.execute("""
        delete from agentmesh.settings s
        where not exists (select from agentmesh.agents a where a.settings_id = s.id)
    """)


def downgrade() -> None:
    """Drop it; what is gone stays gone."""
    op.drop_column("agents", "former_settings", schema="agentmesh")
