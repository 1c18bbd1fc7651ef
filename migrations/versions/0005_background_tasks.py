"""Tasks whose call does not wait for their end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column; tasks so far had calls that wait."""
    op.add_column(
        "tasks", sa.Column("background", sa.Boolean, nullable=False, server_default=sa.false()), schema="agentmesh"
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("tasks", "background", schema="agentmesh")
