"""Todos: the board of a session's work, which its agents share."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the table, and the board of every session with it."""
    op.drop_table("todos", schema="agentmesh")
