"""A model call reserves what it can really take: runs the SQL file of the same name."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Run the .up.sql beside this file."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".up.sql").read_bytes())


def downgrade() -> None:
    """Run the .down.sql beside this file."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".down.sql").read_bytes())
