"""What a model bills is known by its server's address, and a model call by a number drawn by its worker."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the columns, and all bills: one row of a model cannot tell which server billed what."""
    for table, column in (("model_calls", "nonce"), ("reservations", "address")):
        op.drop_column(table, column, schema="agentmesh")
    op.execute("delete from agentmesh.model_bills")
    change = "drop constraint model_bills_pkey, drop column address, add primary key (model)"
    op.execute(f"alter table agentmesh.model_bills {change}")
