"""Timers: messages that become mail when they are due."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the table. Messages that were not due yet are lost with it."""
    op.drop_table("timers", schema="agentmesh")
