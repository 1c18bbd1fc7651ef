"""${message}."""

from __future__ import annotations

from alembic import op

revision = "${up_revision}"
down_revision = "${down_revision}"


def upgrade() -> None:
    """Change tables, types and data; call no function of agentmesh/sql, which are brought up to date afterwards."""


def downgrade() -> None:
    """Undo it."""
