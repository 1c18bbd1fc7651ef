"""Whether a turn that failed had owed its parent an answer: the turn that repeats it owes it again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Add the column; turns that failed before owe nothing when they are run again."""
    op.add_column("agents", sa.Column("owed_seq", sa.BigInteger), schema="agentmesh")


def downgrade() -> None:
    """Drop the column: an answer that is owed again is told to nobody."""
    op.drop_column("agents", "owed_seq", schema="agentmesh")
