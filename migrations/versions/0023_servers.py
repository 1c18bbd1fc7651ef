"""What model servers can, as found out, and which agents use or want a slot of one."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the tables: each process finds out again what servers can, and slots are nobody's."""
    op.drop_table("slots", schema="agentmesh")
    op.drop_table("capabilities", schema="agentmesh")
