"""Which snapshots were stored after one that has more: they are not what a workspace had from then on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Add the column; of older snapshots it is not known."""
    column = sa.Column("late", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("snapshots", column, schema="agentmesh")


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("snapshots", "late", schema="agentmesh")
