"""Questions before many agents start, and a limit of all living agents besides that of those that work."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Add the two limits to sessions, and to requests how many agents they are about and which calls start them."""
    op.add_column(
        "sessions", sa.Column("ask_agents", sa.Integer, nullable=False, server_default="20"), schema="agentmesh"
    )
    op.create_check_constraint("sessions_ask_agents_check", "sessions", "ask_agents >= 0", schema="agentmesh")
    op.add_column("sessions", sa.Column("max_living", sa.Integer), schema="agentmesh")
    op.create_check_constraint("sessions_max_living_check", "sessions", "max_living >= 1", schema="agentmesh")
    op.add_column("requests", sa.Column("agents", sa.Integer), schema="agentmesh")
    op.add_column("requests", sa.Column("covers", ARRAY(sa.Integer)), schema="agentmesh")
    op.create_check_constraint(
        "fan_out_covers_calls", "requests", "(agents is null) = (covers is null)", schema="agentmesh"
    )


def downgrade() -> None:
    """Drop them: nobody is asked, and idle agents count as they did."""
    for name in ("agents", "covers"):
        op.drop_column("requests", name, schema="agentmesh")
    for name in ("ask_agents", "max_living"):
        op.drop_column("sessions", name, schema="agentmesh")
