"""Prefixes of conversations that model servers have read, and those that one agent is reading first."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the table: agents with the same prefix ask their models at the same time again."""
    op.drop_table("prefixes", schema="agentmesh")
