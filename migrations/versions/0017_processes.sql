-- Processes in the background: commands that go on after the call that started them.
create table agentmesh.processes (
  session_id     uuid not null references agentmesh.sessions on delete cascade,
  id             integer not null check (id > 0),           -- counted in the session: short enough for people and models
  agent_id       uuid not null references agentmesh.agents on delete cascade,   -- its owner: gets the mail
  seq            bigint not null,                           -- the call that started it, with ordinal: the same call starts one
  ordinal        integer not null,
  worker_id      bigint not null,                           -- no foreign key: workers' rows may go
  command        text not null check (octet_length(command) between 1 and 131072),
  watch          text check (octet_length(watch) between 1 and 1000),
  state          text not null default 'running' check (state in ('running', 'exited', 'killed', 'lost')),
  exit_code      integer,
  output         text not null default '' check (octet_length(output) <= 65536),
  output_bytes   bigint not null default 0 check (output_bytes >= 0),   -- that it has written in all
  matches        integer not null default 0 check (matches >= 0),
  match_mail_id  bigint,                                    -- the newest mail about a matching line; unread: further ones only count
  started_at     timestamptz not null default clock_timestamp(),
  stop_at        timestamptz,                               -- somebody asked for its end
  ended_at       timestamptz,
  primary key (session_id, id),
  unique (agent_id, seq, ordinal),
  constraint process_ends_once check ((state = 'running') = (ended_at is null)),
  constraint exited_with_a_code check ((state = 'exited') or exit_code is null),
  constraint matched_what_is_watched check (watch is not null or (matches = 0 and match_mail_id is null))
) with (fillfactor = 70);

-- the tick: processes whose worker has ended
create index processes_running on agentmesh.processes (worker_id) where state = 'running';
-- the limits
create index processes_of_session on agentmesh.processes (session_id, agent_id) where state = 'running';

-- Dropping and adding a check of a domain looks at the column once.
alter domain agentmesh.mail_about drop constraint mail_about_check;
alter domain agentmesh.mail_about add check (value in ('merge', 'task', 'report', 'process'));
