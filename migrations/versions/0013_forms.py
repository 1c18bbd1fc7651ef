"""Reports of forks in a fixed form, and commands that check a report before it is taken."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop what was added. Mail keeps the reports; what they are about is forgotten."""
    for name in ("check_exit", "check_approved", "check_command"):
        op.drop_column("tasks", name, schema="agentmesh")
    op.drop_table("forms", schema="agentmesh")
    op.execute("update agentmesh.mail set about = null where about = 'report'")
    op.execute("alter domain agentmesh.mail_about drop constraint mail_about_check")
    op.execute("alter domain agentmesh.mail_about add check (value in ('merge', 'task'))")
