"""Workspaces: where an agent's tools work, its snapshots, and the merges between two of them.

Every session gets one shared workspace, its directory, in which all its agents work as before.
"""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the tables and the columns. Trees on disk and their refs stay: no row names them any more."""
    for table in ("leases", "conflicts", "changes"):
        op.drop_table(table, schema="agentmesh")
    for column in ("holds_lease", "lines_removed", "lines_added", "workspace_id"):
        op.drop_column("agents", column, schema="agentmesh")
    for column in ("leases", "workspace"):
        op.drop_column("sessions", column, schema="agentmesh")
    for table, of in (("snapshots", "snapshot"), ("merges", "merge"), ("workspaces", "workspace")):
        op.execute(f"alter table agentmesh.{table} drop constraint {of}_is_sound")
        op.execute(f"drop function agentmesh.{of}_is_sound")
        op.drop_table(table, schema="agentmesh")
    op.execute("drop type agentmesh.sides")
    op.execute("drop domain agentmesh.tree")
