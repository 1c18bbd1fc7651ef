-- A call of task with items: one task for each item, some of them side by side. The rows of a batch are under the lock of
-- its parent's row.
create table agentmesh.batches (
  parent      uuid not null,
  seq         bigint not null,
  ordinal     integer not null,
  session_id  uuid not null references agentmesh.sessions on delete cascade,
  spec        jsonb not null,                               -- what the tasks of all items have in common
  side        integer not null,                             -- how many items run at once, at most
  items       integer not null check (items between 1 and 1000),
  started     integer not null default 0,                   -- the items up to this place are not queued any more
  running     integer not null default 0 check (running >= 0),
  done        integer not null default 0,
  failed      integer not null default 0,
  started_at  timestamptz not null default clock_timestamp(),
  looked_at   timestamptz not null default clock_timestamp(),   -- when the tick last found queued items without room
  ended_at    timestamptz,
  primary key (parent, seq, ordinal),
  foreign key (parent, seq, ordinal) references agentmesh.tool_calls on delete cascade,
  constraint side_is_sound check (side between 1 and items and running <= side),
  constraint counts_are_sound check (started <= items and running + done + failed = started),
  constraint ended_with_the_last_item check ((ended_at is null) = (done + failed < items))
) with (fillfactor = 70);

-- the tick: batches that had no room for all the items that may run at once
create index batches_short on agentmesh.batches (looked_at) where started < items and running < side;
-- v_batches; deletion of a session
create index batches_session on agentmesh.batches (session_id);

create table agentmesh.batch_items (
  parent   uuid not null,
  seq      bigint not null,
  ordinal  integer not null,
  place    integer not null check (place between 1 and 1000),
  item     text not null,
  -- queued -> running -> done | failed; queued -> failed
  state    text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed')),
  child    uuid references agentmesh.agents on delete cascade,   -- null: it never ran
  result   jsonb,                                           -- as task_result makes it
  primary key (parent, seq, ordinal, place),
  foreign key (parent, seq, ordinal) references agentmesh.batches on delete cascade,
  constraint result_when_over check ((result is null) = (state in ('queued', 'running'))),
  constraint child_when_running check (case state when 'queued' then child is null when 'failed' then true else child is not null end)
) with (fillfactor = 70);

-- deletion of a session: the foreign key's look
create index batch_items_child on agentmesh.batch_items (child);

-- 0: the one task of its call; otherwise the place of its item
alter table agentmesh.tasks add column place integer not null default 0 check (place >= 0);
alter table agentmesh.tasks drop constraint tasks_pkey, add primary key (parent, seq, ordinal, place);
alter table agentmesh.tasks add constraint items_work_in_front check (place = 0 or not background);
