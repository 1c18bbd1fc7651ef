"""Ends that a sub-agent forces on the agents above it, and agents whose rows screens fold away."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the columns. Reports of agents that a halt ended stay, as reports of agents whose turns failed."""
    op.execute("update agentmesh.mail set about = null where about = 'halt'")
    op.execute("alter domain agentmesh.mail_about drop constraint mail_about_check")
    op.execute("alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report', 'process', 'alarm'))")
    for name in ("may_halt", "halted", "silent"):
        op.drop_column("agents", name, schema="agentmesh")
