"""Who interrupted an agent's turn: a person, or an agent above it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the column; null is a person."""
    op.add_column("agents", sa.Column("interrupted_by", sa.Uuid), schema="agentmesh")


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("agents", "interrupted_by", schema="agentmesh")
