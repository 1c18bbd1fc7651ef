"""A message may answer another one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column, and the index by which the end of a mail finds its answers; nearly always that is empty."""
    op.add_column("mail", sa.Column("reply_to", sa.BigInteger), schema="agentmesh")
    op.create_foreign_key(
        "mail_reply_to_fkey",
        "mail",
        "mail",
        ["reply_to"],
        ["id"],
        source_schema="agentmesh",
        referent_schema="agentmesh",
        ondelete="SET NULL",
    )
    answers = sa.text("reply_to is not null")
    op.create_index("mail_reply_to", "mail", ["reply_to"], schema="agentmesh", postgresql_where=answers)


def downgrade() -> None:
    """Drop it: answers are messages like any other then."""
    op.drop_column("mail", "reply_to", schema="agentmesh")
