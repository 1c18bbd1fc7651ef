"""Urgent mail: read in the middle of a turn, as the user's mail is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column, and the index that each step looks into; nearly always it is empty."""
    op.add_column(
        "mail", sa.Column("urgent", sa.Boolean, nullable=False, server_default=sa.false()), schema="agentmesh"
    )
    unread = sa.text("urgent and read_at is null and withdrawn_at is null")
    op.create_index("mail_urgent", "mail", ["recipient"], schema="agentmesh", postgresql_where=unread)


def downgrade() -> None:
    """Drop the column and its index: urgent mail that is unread is mail like any other then."""
    op.drop_index("mail_urgent", "mail", schema="agentmesh")
    op.drop_column("mail", "urgent", schema="agentmesh")
