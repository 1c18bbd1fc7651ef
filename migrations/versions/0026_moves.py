"""Sessions that move to another database of the mesh: what a source remembers of them, and what has arrived sealed."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the tables; refuse while a session is between two databases, because half of it would be lost."""
    held = op.get_bind().exec_driver_sql("select count(*) from agentmesh.arrivals").scalar_one()
    if held:
        raise RuntimeError(f"{held} session(s) are arriving here. Run first: agentmesh sessions move --resume")
    for table in ("arrival_rows", "arrivals", "moves"):
        op.drop_table(table, schema="agentmesh")
