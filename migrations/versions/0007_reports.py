"""Tasks whose result has a form."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns; the results of tasks so far are text."""
    op.add_column("tasks", sa.Column("schema", JSONB), schema="agentmesh")
    op.add_column("tasks", sa.Column("result", JSONB), schema="agentmesh")
    op.add_column("tasks", sa.Column("attempts", sa.Integer, nullable=False, server_default="0"), schema="agentmesh")


def downgrade() -> None:
    """Drop the columns. The parents' conversations keep the results."""
    for name in ("attempts", "result", "schema"):
        op.drop_column("tasks", name, schema="agentmesh")
