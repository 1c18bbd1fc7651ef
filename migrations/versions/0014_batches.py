"""Batches: a call of task whose prompt is done for each of many items."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the tables, and the tasks of all items; the parents' conversations keep the results."""
    op.execute("delete from agentmesh.tasks where place > 0")
    op.execute("alter table agentmesh.tasks drop constraint tasks_pkey, drop column place")
    op.execute("alter table agentmesh.tasks add primary key (parent, seq, ordinal)")
    op.drop_table("batch_items", schema="agentmesh")
    op.drop_table("batches", schema="agentmesh")
