"""Which model a reserved call asks: an agent's own may be the one of its next turn."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Add the column; of a call that waits already, the agent's own is taken."""
    op.add_column("reservations", sa.Column("model", sa.Text), schema="agentmesh")


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("reservations", "model", schema="agentmesh")
