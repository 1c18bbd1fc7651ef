-- Tables, types and constraints. A table refuses every state that the program must never see; an index names the query
-- that it serves. The functions that write them are in agentmesh/sql/functions; the order in which those take locks is
-- in docs/explanation/architecture.md, section "Locks".

-- A tree of agents with a working directory, a host and limits. Its row is the tree lock: fork, kill, reap and the
-- registration of a fan-in wait raise tree_version first. (Not an advisory lock: any role can take those.)
create table agentmesh.sessions (
  id               uuid primary key default gen_random_uuid(),
  title            text not null default '' check (octet_length(title) <= 1000),
  workdir          text not null,
  host             text not null,
  os_user          text not null,
  root_id          uuid,
  permission_mode  text not null default 'ask' check (permission_mode in ('ask', 'edits', 'all', 'plan')),
  rules            jsonb not null default '[]' check (jsonb_typeof(rules) = 'array'),   -- what a person allowed for good ("always")
  attended         boolean not null default true,           -- somebody may answer requests; else what would ask is refused
  needs            text[] not null default '{}',            -- what only some workers offer: "tool weather", "type reviewer" of a Python program
  max_depth        integer not null default 4 check (max_depth >= 0),
  max_children     integer not null default 16 check (max_children >= 0),
  max_agents       integer not null default 64 check (max_agents >= 1),
  max_unread       integer not null default 1000 check (max_unread >= 1),
  max_tokens       bigint default 20000000 check (max_tokens >= 0),        -- null: no cap
  max_cost_usd     numeric(14, 6) default 10 check (max_cost_usd >= 0),    -- null: no cap; counts known cost only
  created_at       timestamptz not null default clock_timestamp(),
  ended_at         timestamptz,
  tree_version     bigint not null default 0,
  endpoints        text[] not null default '{}'             -- model servers that its agents may be run on: a worker's must fit
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- "the newest session of this directory"
create index sessions_workdir on agentmesh.sessions (workdir, created_at desc);

-- System prompt and tools, shared by an agent and its forks; the id is the SHA-256 of both.
create table agentmesh.settings (
  id             text primary key check (id ~ '^[0-9a-f]{64}$'),
  system_prompt  text not null,
  tools          jsonb not null check (jsonb_typeof(tools) = 'array')
);

-- A process that runs agents, or (without providers) one by which an external agent has joined. Its id is new at each start
-- and never used again. It holds the session-level advisory
-- lock (lock_class(), id) on its LISTEN connection: gone within milliseconds of its death.
create table agentmesh.workers (
  -- Drawn, not counted: it is the token of one start, which every lease, claim, tick and lock proves. A counter begins anew
  -- in a restored database, and two processes would have one id. 31 bits, because it is the key of the advisory lock too.
  id           bigint primary key default ('x' || left(gen_random_uuid()::text, 8))::bit(32)::bigint & 2147483647,
  host         text not null,
  os_user      text not null,
  pid          integer not null,
  serves_any   boolean not null default false,              -- sessions of any host and user
  session_id   uuid,                                        -- only this session (a headless run); null: all it may serve
  providers    text[] not null,                             -- model providers it is configured for
  offers       text[] not null default '{}',                -- what it has that sessions may need
  concurrency  integer not null check (concurrency >= 1),
  backend_pid  integer not null,
  started_at   timestamptz not null default clock_timestamp(),
  seen_at      timestamptz not null default clock_timestamp(),
  lost_at      timestamptz,     -- when a sweeper first saw its lock missing
  ended_at     timestamptz,     -- it left, or was declared dead: it owns nothing and writes nothing any more
  endpoints    text[] not null default '{}',                -- of its model servers
  back_at      timestamptz not null default clock_timestamp(),             -- since when it has been seen every few seconds
  server_started_at timestamptz not null default pg_postmaster_start_time()   -- of the server that has its lock
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- the sweeper: workers that should be alive
create index workers_alive on agentmesh.workers (id) where ended_at is null;

-- Caps on an agent with everything below it; null: none. Those of a whole session are in sessions.
-- Domains are looked at where a cap is set; a CHECK would be at each write of an agent.
create domain agentmesh.cap_tokens as bigint check (value >= 0);
create domain agentmesh.cap_usd as numeric(14, 6) check (value >= 0);

create table agentmesh.agents (
  id              uuid primary key default gen_random_uuid(),
  session_id      uuid not null references agentmesh.sessions on delete cascade,
  parent_id       uuid references agentmesh.agents,
  name            text not null,
  depth           integer not null,
  subagent_type   text,
  -- running -> idle | dead; idle -> running | dead; dead is final. docs/explanation/state-machine.md is checked against this.
  status          text not null,
  model           text not null default '',
  settings_id     text not null references agentmesh.settings,
  permissions     jsonb not null default '[]',
  forked_at       bigint,                                   -- the parent's seq up to which its history is inherited
  clean           boolean not null default false,           -- a task's child: it inherits no history at all
  turn            integer not null default 0,
  started_turn    integer not null default 0,               -- the turn whose mail has been read
  interrupt_turn  integer,                                  -- the turn that a person stopped
  held_mail       bigint not null default 0,                -- unread mail up to this id wakes nobody
  owes_report     boolean not null default false,           -- has read mail of its parent and sent nothing since
  agent_wakes     integer not null default 0,               -- wake-ups in a row by agents' mail, nothing done but send
  ended_seq       bigint,                                   -- the transcript row that its last turn ended with
  external        boolean not null default false,           -- somebody else runs its turns: no worker claims it, worker_id is whoever joined as it
  worker_id       bigint references agentmesh.workers,
  epoch           bigint not null default 0,                -- raised by every claim and release: fences old owners
  queued_at       timestamptz not null default clock_timestamp(),
  tool_calls      integer not null default 0,
  model_calls     integer not null default 0,
  input_tokens    bigint not null default 0,
  output_tokens   bigint not null default 0,
  cached_tokens   bigint not null default 0,
  cost_usd        numeric(14, 6) not null default 0,        -- known cost
  unpriced_calls  integer not null default 0,               -- model calls whose price is not known
  created_at      timestamptz not null default clock_timestamp(),
  died_at         timestamptz,
  killed_by       uuid references agentmesh.agents,
  reaped_at       timestamptz,
  compact_turn    integer,                                  -- the turn before which a person asked for a summary
  max_tokens      agentmesh.cap_tokens,
  max_cost_usd    agentmesh.cap_usd
) with (fillfactor = 60, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create function agentmesh.agent_is_sound(a agentmesh.agents) returns boolean
language plpgsql immutable as $$
-- One function in place of a CHECK for each line: PostgreSQL reads and plans every CHECK anew for each statement
-- that writes the table, which was half of what a step's write of its agent cost.
begin
  return a.status in ('running', 'idle', 'dead')
    and (a.status = 'dead') = (a.died_at is not null)
    and (a.status = 'dead' or (a.reaped_at is null and a.killed_by is null))
    and (a.status = 'running' or a.worker_id is null)
    and a.turn >= 0 and a.started_turn <= a.turn                               -- a turn starts once
    and (a.parent_id is null) = (a.depth = 0) and a.depth >= 0
    and (a.parent_id is null) = (a.name = 'root')
    and (a.parent_id is null) = (a.forked_at is null) and coalesce(a.forked_at >= 0, true)
    and coalesce(not a.clean or a.forked_at = 0, true)                         -- the clean inherit nothing
    and a.name ~ '^[a-z0-9][a-z0-9_.-]{0,31}$' and a.name not in ('parent', 'user', 'all');
end $$;

comment on function agentmesh.agent_is_sound is 'What no agent may be.';

alter table agentmesh.agents add constraint agent_is_sound check (agentmesh.agent_is_sound(agents));

create function agentmesh.require_parents_permissions() returns trigger
language plpgsql as $$
declare
  above jsonb;
begin
  if new.parent_id is null then
    return new;  -- a root, which begins with its session
  end if;
  select a.permissions into above from agentmesh.agents a where a.id = new.parent_id;
  if new.permissions is distinct from above and exists (
    select from jsonb_array_elements(case when above = '[]' then '[[]]' else above end) with ordinality layers (layer, place)
    where new.permissions -> (place::integer - 1) is distinct from layer)
  then
    raise insufficient_privilege using message = format('agent %s may not do more than its parent', new.name);
  end if;
  return new;
end $$;

comment on function agentmesh.require_parents_permissions is
  'An agent''s permissions begin with its parent''s layers, whoever inserts its row: each further layer only takes away.';

create trigger permissions_only_narrow before insert on agentmesh.agents for each row execute function agentmesh.require_parents_permissions();

alter table agentmesh.sessions add foreign key (root_id) references agentmesh.agents deferrable initially deferred;
-- deletion of a session: the foreign key's look for sessions of the deleted
create index sessions_root on agentmesh.sessions (root_id);

-- fork's choice of a name, resolution by name
create unique index agents_name on agentmesh.agents (session_id, name);
-- limits; the oldest of a session: ps, list_agents, screens
create index agents_living on agentmesh.agents (session_id, created_at, id) where status <> 'dead';
-- who runs, the newest first: screens, how many work
create index agents_running on agentmesh.agents (session_id, queued_at) where status = 'running';
-- the dead that a screen still shows, the newest first; reap
create index agents_unreaped on agentmesh.agents (session_id, died_at) where status = 'dead' and reaped_at is null;
-- subtrees; living children, in their order
create index agents_parent on agentmesh.agents (parent_id, created_at, id);
-- deletion of a session: the foreign key's look for victims of the deleted
create index agents_killed_by on agentmesh.agents (killed_by) where killed_by is not null;
-- claim
create index agents_claimable on agentmesh.agents (queued_at) where status = 'running' and worker_id is null and not external;
-- tick, sweep; with the id, so that it is as good a way to one agent of a worker as the primary key: one may own thousands
create index agents_worker on agentmesh.agents (worker_id, id) where worker_id is not null;
-- whether any agent of a session has a cap; v_budgets
create index agents_capped on agentmesh.agents (session_id) where max_tokens is not null or max_cost_usd is not null;

-- What an agent is doing right now, for people; no rule depends on it. Apart from agents: written often, and a screen
-- must never contend for the row that the verbs lock.
create table agentmesh.activity (
  agent_id  uuid primary key references agentmesh.agents on delete cascade,
  activity  text not null check (octet_length(activity) <= 400),
  at        timestamptz not null default clock_timestamp()
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create function agentmesh.row_is_sound(seq bigint, kind text, content jsonb) returns boolean
language plpgsql immutable as $$
begin
  return seq > 0 and jsonb_typeof(content) = 'object' and kind in (
    'user', 'assistant', 'tool_result', 'mail', 'summary',           -- go to the model
    'capture', 'command', 'event', 'mark', 'error');                 -- never do
end $$;

comment on function agentmesh.row_is_sound is 'What no row of a transcript may be; a function for the reason given at agent_is_sound.';

-- Append-only. seq is given under the agent's row lock and has no gaps.
create table agentmesh.transcript (
  agent_id    uuid not null references agentmesh.agents on delete cascade,
  seq         bigint not null,
  kind        text not null,
  content     jsonb not null,
  created_at  timestamptz not null default clock_timestamp(),
  primary key (agent_id, seq),
  constraint row_is_sound check (agentmesh.row_is_sound(seq, kind, content))
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

-- the few rows that are no part of the conversation, one index for all that look for some of them: after which rows older
-- ones are not sent any more, the newest capture, marks
create index transcript_events on agentmesh.transcript (agent_id, seq) where kind in ('summary', 'event', 'mark');
-- a mail becomes at most one row of its recipient's transcript
create unique index transcript_mail on agentmesh.transcript (agent_id, (content ->> 'mail_id')) where kind in ('mail', 'user');

create function agentmesh.mail_is_sound(sender uuid, recipient uuid, body text, automatic boolean, failed boolean, key text,
  read_at timestamptz, read_seq bigint, withdrawn_at timestamptz) returns boolean
language plpgsql immutable as $$
begin
  return octet_length(body) <= 262144 and (automatic or body <> '') and (automatic or not failed)   -- only reports are empty, or fail
    and (sender is null or sender <> recipient) and coalesce(octet_length(key) between 1 and 200, true)
    and (read_at is null) = (read_seq is null) and (read_at is null or withdrawn_at is null);       -- what is read is shown, and stays
end $$;

comment on function agentmesh.mail_is_sound is 'What no mail may be; a function for the reason given at agent_is_sound.';

create table agentmesh.mail (
  id            bigint generated always as identity (cache 1) primary key,
  session_id    uuid not null,                              -- no foreign key: the recipient's implies it
  sender        uuid references agentmesh.agents on delete cascade,   -- null: the user
  recipient     uuid not null references agentmesh.agents on delete cascade,
  body          text not null,
  automatic     boolean not null default false,             -- the report of a child that forgot to
  failed        boolean not null default false,             -- of an automatic report: body says why the turn failed
  key           text,
  sent_at       timestamptz not null default clock_timestamp(),
  read_at       timestamptz,
  read_seq      bigint,                                     -- the recipient's transcript row that shows it
  withdrawn_at  timestamptz,
  constraint mail_is_sound check (agentmesh.mail_is_sound(sender, recipient, body, automatic, failed, key, read_at, read_seq, withdrawn_at))
) with (autovacuum_vacuum_scale_factor = 0.02);

-- unread mail: the limit, wait, the end of a turn, claim
create index mail_unread on agentmesh.mail (recipient, sender, id) where read_at is null and withdrawn_at is null;
-- the same key again is the same mail
create unique index mail_key on agentmesh.mail (recipient, sender, key) nulls not distinct where key is not null;
-- v_mail, deletion of a session
create index mail_sender on agentmesh.mail (sender);
create index mail_recipient on agentmesh.mail (recipient, id);

-- The header of a wait: at most one per agent. seq and ordinal name the tool call; both null for a person's /wait.
create table agentmesh.wait (
  waiter      uuid primary key references agentmesh.agents on delete cascade,
  seq         bigint,
  ordinal     integer,
  targets     jsonb check (jsonb_typeof(targets) = 'array'),   -- as asked and as resolved; null: anyone
  deadline    timestamptz not null,
  started_at  timestamptz not null default clock_timestamp(),
  constraint call_is_whole check ((seq is null) = (ordinal is null))
) with (fillfactor = 70, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_cost_delay = 0);

-- Who waits for whom, right now: tells send, kill and the end of a turn whom to notify.
create table agentmesh.waits (
  waiter  uuid not null references agentmesh.wait on delete cascade,
  target  uuid not null,
  primary key (waiter, target),
  constraint not_for_itself check (waiter <> target)
) with (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_cost_delay = 0);

-- whom to notify about a target
create index waits_target on agentmesh.waits (target);

create function agentmesh.call_is_sound(ordinal integer, status text, started_at timestamptz, ended_at timestamptz, result_seq bigint) returns boolean
language plpgsql immutable as $$
begin
  return ordinal >= 0 and status in ('open', 'asking', 'delegated', 'started', 'done')
    and (status = 'done') = (result_seq is not null) and (status = 'done') = (ended_at is not null)
    and (status <> 'started' or started_at is not null);
end $$;

comment on function agentmesh.call_is_sound is 'What no tool call may be; a function for the reason given at agent_is_sound.';

-- seq is the assistant's row that asks for the call, ordinal its place there: a provider may repeat its own ids.
create table agentmesh.tool_calls (
  agent_id    uuid not null references agentmesh.agents on delete cascade,
  seq         bigint not null,
  ordinal     integer not null,
  call_id     text not null,
  name        text not null,
  arguments   text not null,                                -- as the model wrote them
  -- open -> asking (a person is asked) -> open | done; open -> delegated (a sub-agent works on it) -> done; open -> started -> done
  status      text not null default 'open',
  epoch       bigint,                                       -- of the owner that started it
  started_at  timestamptz,
  ended_at    timestamptz,
  result_seq  bigint,
  primary key (agent_id, seq, ordinal),
  constraint call_is_sound check (agentmesh.call_is_sound(ordinal, status, started_at, ended_at, result_seq))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- calls without a result: forked_at, kill, interrupt, recovery
create index tool_calls_open on agentmesh.tool_calls (agent_id, seq, ordinal) where status <> 'done';
-- an agent's newest to-do list
create index tool_calls_todos on agentmesh.tool_calls (agent_id, seq, ordinal) where name = 'todo_write';

-- A call that a person decides about (approval) or answers (question). Durable: answered in any terminal, after any restart.
create table agentmesh.requests (
  id            uuid primary key default gen_random_uuid(),
  session_id    uuid not null,                              -- no foreign key: the agent's implies it
  agent_id      uuid not null,
  seq           bigint not null,
  ordinal       integer not null,
  kind          text not null check (kind in ('approval', 'question')),
  tool          text not null,
  arguments     jsonb not null check (jsonb_typeof(arguments) = 'object'),   -- as read
  reason        text not null default '',                   -- why it asks
  rules         jsonb not null default '[]' check (jsonb_typeof(rules) = 'array'),   -- what "always" would allow
  question      text,
  options       jsonb check (jsonb_typeof(options) = 'array'),
  asked_at      timestamptz not null default clock_timestamp(),
  answer        jsonb check (jsonb_typeof(answer) = 'object'),
  answered_at   timestamptz,
  answered_by   text check (octet_length(answered_by) <= 200),
  cancelled_at  timestamptz,                                -- its turn ended first: killed, interrupted, failed
  foreign key (agent_id, seq, ordinal) references agentmesh.tool_calls on delete cascade,
  constraint one_request_per_call unique (agent_id, seq, ordinal),
  constraint answered_has_an_answer check ((answered_at is null) = (answer is null) and (answered_at is null) = (answered_by is null)),
  constraint answered_or_cancelled check (answered_at is null or cancelled_at is null),
  constraint question_is_asked check ((kind = 'question') = (question is not null))
) with (fillfactor = 70);

-- what waits for a person: screens, cancelling, modes and rules that settle
create index requests_pending on agentmesh.requests (session_id, asked_at) where answered_at is null and cancelled_at is null;
-- a list of all of them, answered or not
create index requests_session on agentmesh.requests (session_id, asked_at);

-- A call of task: which sub-agent works on it, and what the sub-agent had used before.
create table agentmesh.tasks (
  parent             uuid not null,
  seq                bigint not null,
  ordinal            integer not null,
  child              uuid not null references agentmesh.agents on delete cascade,
  description        text not null default '',
  max_steps          integer not null check (max_steps >= 1),
  model_calls_before integer not null,
  tool_calls_before  integer not null,
  tokens_before      bigint not null,
  cost_before        numeric(14, 6) not null,
  from_seq           bigint not null,                       -- the child's newest row when it began
  started_at         timestamptz not null default clock_timestamp(),
  ended_at           timestamptz,
  status             text check (status in ('completed', 'failed', 'timeout', 'interrupted', 'killed', 'max_steps')),
  primary key (parent, seq, ordinal),
  foreign key (parent, seq, ordinal) references agentmesh.tool_calls on delete cascade,
  constraint ended_has_a_status check ((ended_at is null) = (status is null))
) with (fillfactor = 70);

-- a sub-agent works on one task at a time
create unique index tasks_open on agentmesh.tasks (child) where ended_at is null;
-- edges of the wait graph; deletion of a session: the foreign key's look
create index tasks_child on agentmesh.tasks (child);

create table agentmesh.model_calls (
  id              bigint generated always as identity primary key,
  agent_id        uuid not null references agentmesh.agents on delete cascade,
  turn            integer not null,
  model           text not null,
  input_tokens    bigint not null default 0 check (input_tokens >= 0),      -- cached ones included
  output_tokens   bigint not null default 0 check (output_tokens >= 0),
  cached_tokens   bigint not null default 0 check (cached_tokens between 0 and input_tokens),
  estimated       boolean not null default false,           -- the server sent no usage
  cost_usd        numeric(14, 6),                           -- null: no known price
  latency_ms      integer,
  first_token_ms  integer,
  finish_reason   text,
  error           text,
  ended_at        timestamptz not null default clock_timestamp()
);

-- v_cost; an agent's newest call, by which the next is estimated
create index model_calls_agent on agentmesh.model_calls (agent_id, id);

-- Which content of which file an agent has seen, so that none overwrites what it does not know. Append-only, a row for
-- each content that is new to its agent.
create table agentmesh.file_seen (
  id          bigint generated always as identity primary key,
  session_id  uuid not null,                                -- no foreign key: the agent's implies it
  agent_id    uuid not null references agentmesh.agents on delete cascade,
  seq         bigint not null check (seq > 0),              -- the step that saw it; a fork inherits it with the step
  path        text not null check (octet_length(path) <= 8192),   -- absolute, free of links, on the session's host
  digest      text not null check (digest ~ '^[0-9a-f]{64}$'),    -- SHA-256 of the whole content
  wrote       boolean not null,                             -- the agent put it there
  at          timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_insert_scale_factor = 0.05);

-- what an agent last saw of a file; by hash: a path may be longer than an index entry
create index file_seen_agent on agentmesh.file_seen (agent_id, hashtextextended(path, 0), id);
-- who last wrote a file
create index file_seen_written on agentmesh.file_seen (session_id, hashtextextended(path, 0), id) where wrote;

-- Pauses of model servers, shared by all workers: who was refused for load (429, 503, 529) tells the others.
-- Lost rows do no harm: whoever asks too early is refused and writes a new one.

create table agentmesh.pauses (
  provider  text not null check (octet_length(provider) <= 1000),
  model     text not null check (octet_length(model) <= 1000),   -- as the provider knows it
  until     timestamptz not null,
  reason    text not null check (octet_length(reason) <= 4000),
  set_by    text not null check (octet_length(set_by) <= 1000),  -- host and process
  at        timestamptz not null default clock_timestamp(),
  primary key (provider, model)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- The lock under which calls are reserved, and what a session has used apart from its bookings. In a table of its own, written twice
-- per model call. No foreign key: its look at the session's row would wait for verbs.
create table agentmesh.session_usage (
  session_id  uuid primary key,
  tokens      bigint not null default 0,
  cost_usd    numeric(14, 6) not null default 0
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- What calls have used and session_usage does not hold yet. Whoever books a call inserts, so that the ends of many agents' steps do not
-- queue for one row; whoever reserves moves them when they are many.
create table agentmesh.bookings (
  session_id  uuid not null,
  tokens      bigint not null,
  cost_usd    numeric(14, 6) not null                       -- known cost
) with (autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- reserve
create index bookings_session on agentmesh.bookings (session_id);

-- What an agent's model call that is being made may take. It counts while the worker that made it owns the agent (epoch): when the
-- agent is killed, goes idle or is taken over, it is void in that very commit.
create table agentmesh.reservations (
  agent_id    uuid primary key,
  session_id  uuid not null,
  epoch       bigint not null,
  tokens      bigint not null,
  cost_usd    numeric(14, 6) not null,
  at          timestamptz not null default clock_timestamp(),
  input_tokens  bigint not null default 0,                  -- counted in the request
  output_tokens bigint not null default 0,                  -- allowed for the answer
  input_usd   numeric,                                      -- listed USD for one uncached input token; null: in no list
  output_usd  numeric,
  is_first    boolean not null default false,               -- whether nothing was known of the model's bills
  waits       boolean not null default false,               -- for others' calls: it holds nothing, and its agent is no worker's burden
  constraint waiting_holds_nothing check (not waits or (tokens = 0 and cost_usd = 0))
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- reserve
create index reservations_session on agentmesh.reservations (session_id);
-- wake_waiting
create index reservations_waiting on agentmesh.reservations (session_id, at) where waits;

-- What a model has billed, by the largest excess: what its next call may take is this many times what is counted for it. Two figures make the bound hold
-- for a server that adds the same amount to each call (a prompt of its own, a price per call): the largest ratio, and the smallest bill.
create table agentmesh.model_bills (
  model         text primary key,                                      -- as agents.model has it: provider/name
  input_excess  numeric not null default 1 check (input_excess >= 1),    -- input tokens billed for one that was counted
  output_excess numeric not null default 1 check (output_excess >= 1),   -- output tokens billed for one that was allowed
  least_input   bigint not null default 0,                               -- input tokens of the smallest bill
  even_usd      numeric not null default 0,                              -- USD for a token, were output as dear as input; 0: no price is known
  steep_usd     numeric not null default 0,                              -- the same, were output ten times as dear
  least_usd     numeric not null default 0,                              -- USD of the smallest bill
  input_usd     numeric,                                                 -- listed USD for one uncached input token; null: in no list
  cached_usd    numeric,
  output_usd    numeric,
  list_excess   numeric not null default 1 check (list_excess >= 1),     -- USD billed for one of the list
  at            timestamptz not null default clock_timestamp()           -- of the newest change
);

-- Who calls on behalf of a running agent: its worker's lease, the tool call to answer, if any, and a note for its result.
-- An external agent has a lease and no calls: whoever runs it keeps its conversation. Without worker_id nobody calls
-- ("caller is not null" would ask whether all fields are known).
create type agentmesh.caller as (worker_id bigint, epoch bigint, seq bigint, ordinal integer, note text);

-- What a look at a wait found; wait.sql.
create type agentmesh.seen as (results jsonb, met boolean, taken bigint[], user_mail bigint, user_says text);

-- The program whose code (agentmesh/sql) is in this schema; store/code.py.
create table agentmesh.release (
  one_row  boolean primary key default true check (one_row),-- there is no second
  version  text not null,                                   -- of agentmesh
  code     text not null,                                   -- digest of all its files
  at       timestamptz not null default clock_timestamp()
);

create table agentmesh.code (
  file     text primary key,                                -- below agentmesh/sql
  digest   text not null,                                   -- SHA-256 of its text
  objects  text[] not null                                  -- functions and views that it made, as DROP takes them
);
