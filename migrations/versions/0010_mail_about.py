"""What automatic mail is about, if it is no report: a merge, or a task in the background."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column. Its domain is looked at only where it is set; a CHECK would be at each write of a mail."""
    op.execute("create domain agentmesh.mail_about as text check (value in ('merge', 'task'))")
    op.execute("alter table agentmesh.mail add column about agentmesh.mail_about")


def downgrade() -> None:
    """Drop the column: all automatic mail is reports then."""
    op.drop_column("mail", "about", schema="agentmesh")
    op.execute("drop domain agentmesh.mail_about")
