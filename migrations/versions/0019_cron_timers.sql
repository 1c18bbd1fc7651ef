alter table agentmesh.timers
  add column cron      text check (octet_length(cron) between 1 and 200),    -- with its time zone: a worker computes the next time
  add column first_at  timestamptz,                                          -- as the sender gave it; null: a span, or cron
  add column key       text check (octet_length(key) between 1 and 200),
  add column images    jsonb check (jsonb_typeof(images) = 'array'),         -- references; null: none
  add constraint repeats_one_way check (every_seconds is null or cron is null);

-- the tick: what is due, by who computes the next time
drop index agentmesh.timers_due;
create index timers_due on agentmesh.timers (due_at) where ended_at is null and cron is null;
create index timers_cron_due on agentmesh.timers (due_at) where ended_at is null and cron is not null;
-- the same key again is the same timer
create unique index timers_key on agentmesh.timers (recipient, sender, key) nulls not distinct where key is not null;

-- A timer's mail may go to its sender: an alarm. send refuses all other mail to oneself.
create or replace function agentmesh.mail_is_sound(sender uuid, recipient uuid, body text, automatic boolean, failed boolean, key text,
  read_at timestamptz, read_seq bigint, withdrawn_at timestamptz) returns boolean
language plpgsql immutable as $$
begin
  return octet_length(body) <= 262144 and (automatic or body <> '') and (automatic or not failed)   -- only reports are empty, or fail
    and coalesce(octet_length(key) between 1 and 200, true)
    and (read_at is null) = (read_seq is null) and (read_at is null or withdrawn_at is null);       -- what is read is shown, and stays
end $$;

-- Dropping and adding a check of a domain looks at the column once.
alter domain agentmesh.mail_about drop constraint mail_about_check;
alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report', 'process', 'alarm'));
