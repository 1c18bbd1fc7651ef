"""Images: their bytes once a session, and what mail refers to."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the table and the column. Rows still name their images, which the older program takes for text."""
    op.drop_column("mail", "images", schema="agentmesh")
    op.drop_table("images", schema="agentmesh")
