"""When the limits of a session were changed last: agents that were there before may be more than they allow."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Add the column. Limits of older sessions may have been lowered, so they hold from now on."""
    column = sa.Column("limits_set_at", sa.DateTime(timezone=True))
    op.add_column("sessions", column, schema="agentmesh")
    op.execute("update agentmesh.sessions set limits_set_at = clock_timestamp()")


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("sessions", "limits_set_at", schema="agentmesh")
