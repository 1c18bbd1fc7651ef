"""The baseline: all tables, types and constraints, as the SQL file of the same name makes them."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None

_TABLES = (
    "release code model_bills reservations bookings session_usage pauses file_seen model_calls tasks requests "
    "tool_calls waits wait mail transcript activity"
)
_FUNCTIONS = "agent_is_sound row_is_sound mail_is_sound call_is_sound require_parents_permissions"


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop everything, agents and sessions last: each refers to the other."""
    for table in _TABLES.split():
        op.drop_table(table, schema="agentmesh")
    op.execute("alter table agentmesh.sessions drop constraint sessions_root_id_fkey")
    op.execute("drop trigger permissions_only_narrow on agentmesh.agents")
    op.execute("alter table agentmesh.agents drop constraint agent_is_sound")
    for function in _FUNCTIONS.split():
        op.execute(f"drop function agentmesh.{function}")
    for table in ("agents", "workers", "settings", "sessions"):
        op.drop_table(table, schema="agentmesh")
    for name in (
        "type agentmesh.seen",
        "type agentmesh.caller",
        "domain agentmesh.cap_usd",
        "domain agentmesh.cap_tokens",
    ):
        op.execute(f"drop {name}")
