"""Limits of turns and of a session's time: how many model calls, how long, and how many agents were ever made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_LEAST = {"max_turns": 1, "max_turn_seconds": 1, "max_spawns": 0}


def upgrade() -> None:
    """Add the limits to sessions, and to agents what a turn is measured from."""
    for name, least in _LEAST.items():
        op.add_column("sessions", sa.Column(name, sa.Integer), schema="agentmesh")
        op.create_check_constraint(f"sessions_{name}_check", "sessions", f"{name} >= {least}", schema="agentmesh")
    op.add_column("sessions", sa.Column("deadline", sa.TIMESTAMP(timezone=True)), schema="agentmesh")
    op.add_column(
        "agents", sa.Column("turn_calls", sa.BigInteger, nullable=False, server_default="0"), schema="agentmesh"
    )
    op.add_column("agents", sa.Column("turn_began", sa.TIMESTAMP(timezone=True)), schema="agentmesh")


def downgrade() -> None:
    """Drop them: nothing is limited any more."""
    for name in ("turn_calls", "turn_began"):
        op.drop_column("agents", name, schema="agentmesh")
    for name in (*_LEAST, "deadline"):
        op.drop_column("sessions", name, schema="agentmesh")
