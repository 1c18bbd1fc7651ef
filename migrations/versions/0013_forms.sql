-- What a fork's reports to its parent must look like, and its newest one.
create table agentmesh.forms (
  agent_id       uuid primary key references agentmesh.agents on delete cascade,
  schema         jsonb not null check (coalesce(schema ->> 'type', '') = 'object'),
  check_command  text check (octet_length(check_command) between 1 and 8192),   -- null: nothing is run
  check_approved boolean not null default false,            -- who asked for it was allowed to run it
  check_exit     integer,                                   -- of the newest run; null: none has ended
  attempts       integer not null default 0 check (attempts between 0 and 3),   -- at the newest report
  result         jsonb,
  ended_at       timestamptz,                               -- null: the first report is owed
  status         text check (status in ('reported', 'failed')),
  constraint ended_has_a_status check ((ended_at is null) = (status is null)),
  constraint reported_has_a_result check ((result is not null) = (coalesce(status, '') = 'reported')),
  constraint only_a_check_exits check (check_exit is null or check_command is not null)
) with (fillfactor = 70);

alter table agentmesh.tasks
  add column check_command text check (octet_length(check_command) between 1 and 8192),
  add column check_approved boolean not null default false,
  add column check_exit integer,
  add constraint only_a_check_exits check (check_exit is null or check_command is not null),
  add constraint a_check_needs_a_form check (check_command is null or schema is not null);

alter domain agentmesh.mail_about drop constraint mail_about_check;
alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report'));
