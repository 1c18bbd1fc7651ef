"""Processes: commands in the background, and automatic mail about them."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the table. Mail about processes becomes mail about tasks, which an older program can show."""
    op.drop_table("processes", schema="agentmesh")
    op.execute("update agentmesh.mail set about = 'task' where about = 'process'")
    op.execute("alter domain agentmesh.mail_about drop constraint mail_about_check")
    op.execute("alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report'))")
