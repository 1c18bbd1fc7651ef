-- Messages that become mail when they are due. Unread mail stays a table of its own, so no query of it asks for the time.
create table agentmesh.timers (
  id             bigint generated always as identity primary key,
  session_id     uuid not null references agentmesh.sessions on delete cascade,
  sender         uuid references agentmesh.agents on delete cascade,   -- null: the user
  recipient      uuid not null references agentmesh.agents on delete cascade,
  body           text not null,
  every_seconds  double precision check (every_seconds between 60 and 31622400),   -- null: once
  due_at         timestamptz not null,
  created_at     timestamptz not null default clock_timestamp(),
  rung           integer not null default 0,                -- how often it became mail
  mail_id        bigint,                                    -- the newest mail that it became
  held_up        boolean not null default false,            -- the mailbox was full when it was due: tried again each minute
  ended_at       timestamptz,
  ended_as       text check (ended_as in ('rung', 'cancelled', 'dead')),
  constraint ended_as_something check ((ended_at is null) = (ended_as is null))
);

-- the tick: what is due
create index timers_due on agentmesh.timers (due_at) where ended_at is null;
-- the limit of a session, death, v_timers; deletion of a session
create index timers_session on agentmesh.timers (session_id, ended_at);
create index timers_sender on agentmesh.timers (sender);
create index timers_recipient on agentmesh.timers (recipient);
