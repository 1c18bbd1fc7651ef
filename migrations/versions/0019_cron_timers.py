"""Timers by cron expressions, with keys and images, and mail that an agent sent to itself for later."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0019"
down_revision = "0018"

_SOUND = """
create or replace function agentmesh.mail_is_sound(sender uuid, recipient uuid, body text, automatic boolean,
  failed boolean, key text, read_at timestamptz, read_seq bigint, withdrawn_at timestamptz) returns boolean
language plpgsql immutable as $$
begin
  return octet_length(body) <= 262144 and (automatic or body <> '') and (automatic or not failed)
    and (sender is null or sender <> recipient) and coalesce(octet_length(key) between 1 and 200, true)
    and (read_at is null) = (read_seq is null) and (read_at is null or withdrawn_at is null);
end $$
"""


def upgrade() -> None:
    """Run the SQL file beside this one."""
    op.get_bind().connection.cursor().execute(Path(__file__).with_suffix(".sql").read_bytes())


def downgrade() -> None:
    """Drop the columns. Timers that an older program cannot ring are lost, and so are alarms that were not read."""
    op.execute("delete from agentmesh.timers where cron is not null or sender = recipient")
    op.execute("drop index agentmesh.timers_due, agentmesh.timers_cron_due, agentmesh.timers_key")
    op.execute(
        "alter table agentmesh.timers drop column cron, drop column key, drop column images, drop column first_at"
    )
    op.execute("create index timers_due on agentmesh.timers (due_at) where ended_at is null")
    op.execute("delete from agentmesh.mail where about = 'alarm' and read_at is null")
    op.execute("update agentmesh.mail set about = null where about = 'alarm'")
    op.execute("alter domain agentmesh.mail_about drop constraint mail_about_check")
    op.execute("alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report', 'process'))")
    op.execute(_SOUND)
