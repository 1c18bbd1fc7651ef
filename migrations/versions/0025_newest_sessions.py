"""An index of all sessions by age: lists show the newest, and a search of all begins with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Create it."""
    op.create_index("sessions_newest", "sessions", [sa.text("created_at desc"), "id"], schema="agentmesh")


def downgrade() -> None:
    """Drop it."""
    op.drop_index("sessions_newest", "sessions", schema="agentmesh")
