-- What a server was seen to do with one of its models; null: not known. What a configuration says comes first.
create table agentmesh.capabilities (
  provider        text not null check (octet_length(provider) <= 1000),
  address         text not null check (octet_length(address) <= 4000),   -- its base URL, without password and query
  model           text not null check (octet_length(model) <= 1000),     -- as the provider knows it
  streams         boolean,                                               -- whether its streams bring what it answers to requests with tools
  needs_choice    boolean,                                               -- whether it leaves out tools unless tool_choice says auto
  forced_calls    text check (forced_calls in ('tool_choice', 'response_format', 'none')),   -- how it can be made to call a tool
  slots           integer check (slots between 1 and 10000),             -- conversations that it keeps and answers at once
  context_window  integer check (context_window >= 1),                   -- in tokens
  caches          boolean,                                               -- whether it has reported cached tokens
  set_by          text not null check (octet_length(set_by) <= 1000),    -- host and process that found out the newest of it, for people
  at              timestamptz not null default clock_timestamp(),        -- when that was
  primary key (provider, address, model)
);

-- Agents that ask a model server with few slots, or want to. A row counts while its agent runs and has the same epoch.
create table agentmesh.slots (
  agent_id    uuid primary key,                                    -- no foreign key: a session that is deleted must not wait for take_slot
  epoch       bigint not null,
  model       text not null check (octet_length(model) <= 1000),   -- provider/model
  key         text not null check (key ~ '^[0-9a-f]{64}$'),        -- of the prefix that it shares with others
  tokens      integer not null check (tokens >= 0),                -- how long that is
  since       timestamptz not null default clock_timestamp(),      -- when it began to want one
  entered_at  timestamptz                                          -- when it got one
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index slots_model on agentmesh.slots (model, key);          -- who asks the same server
