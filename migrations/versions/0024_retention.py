"""Sessions that expire: pinned ones stay, those that are being erased are marked. Thresholds for autovacuum."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_GROWING = ("transcript", "mail", "tool_calls", "model_calls", "file_seen", "snapshots", "changes")
"""With the default, a table of ten million rows keeps two million dead ones, and plans are made for it as it was a
million rows ago. An insert makes it visible to index-only scans sooner, and freezes it in small parts."""
_GROWS = "autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor, autovacuum_analyze_scale_factor"
_SET = (
    "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,"
    " autovacuum_analyze_scale_factor = 0.02"
)
_BEFORE = {
    "transcript": "autovacuum_vacuum_insert_scale_factor = 0.05",
    "mail": "autovacuum_vacuum_scale_factor = 0.02",
    "tool_calls": "autovacuum_vacuum_scale_factor = 0.02",
    "file_seen": "autovacuum_vacuum_insert_scale_factor = 0.05",
    "snapshots": "autovacuum_vacuum_insert_scale_factor = 0.05",
    "changes": "autovacuum_vacuum_insert_scale_factor = 0.05",
}
_CHANGING = (
    *("batch_items", "batches", "conflicts", "forms", "leases", "merges", "model_bills", "processes", "requests"),
    *("tasks", "timers", "todos"),
)
"""Their rows change several times. The cost is small, because so are they, and the delay would let them grow."""
_CHANGES = "autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay"
_HOT = "autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0"


def upgrade() -> None:
    """Add the columns, their indexes and the thresholds."""
    op.add_column(
        "sessions", sa.Column("pinned", sa.Boolean, nullable=False, server_default=sa.false()), schema="agentmesh"
    )
    op.add_column("sessions", sa.Column("erasing_at", sa.TIMESTAMP(timezone=True)), schema="agentmesh")
    owner_and_age = ["host", "os_user", "created_at", "id"]  # those that may have expired
    op.create_index("sessions_age", "sessions", owner_and_age, schema="agentmesh")
    op.create_index(  # those whose erasing was cut short
        "sessions_erasing", "sessions", ["erasing_at"], schema="agentmesh", postgresql_where="erasing_at is not null"
    )
    for table in _GROWING:
        op.execute(f"alter table agentmesh.{table} set ({_SET})")
    for table in _CHANGING:
        op.execute(f"alter table agentmesh.{table} set ({_HOT})")


def downgrade() -> None:
    """Drop them: nothing expires."""
    for table in _GROWING:
        op.execute(f"alter table agentmesh.{table} reset ({_GROWS})")
        if table in _BEFORE:
            op.execute(f"alter table agentmesh.{table} set ({_BEFORE[table]})")
    for table in _CHANGING:
        op.execute(f"alter table agentmesh.{table} reset ({_CHANGES})")
    for name in ("sessions_erasing", "sessions_age"):
        op.drop_index(name, "sessions", schema="agentmesh")
    for name in ("erasing_at", "pinned"):
        op.drop_column("sessions", name, schema="agentmesh")
