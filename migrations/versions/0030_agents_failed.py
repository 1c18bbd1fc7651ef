"""An index of agents that failed, by session: the board of all sessions finds them wherever they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Create it."""
    failed = sa.text("status = 'idle' and ended_as in ('failed', 'out of budget')")
    op.create_index(
        "agents_failed", "agents", ["session_id", "created_at"], schema="agentmesh", postgresql_where=failed
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_index("agents_failed", "agents", schema="agentmesh")
