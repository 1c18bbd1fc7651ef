"""How hard a model thinks for an agent, where its provider has such levels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh")


def upgrade() -> None:
    """Add the column: null is what the server does by itself."""
    op.add_column("agents", sa.Column("effort", sa.Text), schema="agentmesh")
    levels = ", ".join(f"'{level}'" for level in _LEVELS)
    op.create_check_constraint("agents_effort_check", "agents", f"effort in ({levels})", schema="agentmesh")


def downgrade() -> None:
    """Drop it: servers decide again."""
    op.drop_column("agents", "effort", schema="agentmesh")
