-- What several agents' conversations begin with, for one model. Rows that nobody has used for an hour are removed by the next new one.
create table agentmesh.prefixes (
  key         text primary key check (key ~ '^[0-9a-f]{64}$'),   -- of the model and everything that it reads first
  model       text not null check (octet_length(model) <= 1000),
  agent_id    uuid not null,                                     -- which agent went first; no foreign key, because it may be reaped
  held_until  timestamptz not null,                              -- until then all others wait for its first token
  warm_at     timestamptz                                        -- when its first token came
) with (fillfactor = 50, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
