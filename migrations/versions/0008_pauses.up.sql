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

-- Let all workers leave a model alone for so many seconds (an hour at most); a pause that ends later stays.
create function agentmesh.pause(provider text, model text, seconds double precision, reason text, set_by text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into agentmesh.pauses as p (provider, model, until, reason, set_by)
  values (pause.provider, pause.model, clock_timestamp() + make_interval(secs => least(pause.seconds, 3600)), left(pause.reason, 1000), pause.set_by)
  on conflict (provider, model) do update set until = excluded.until, reason = excluded.reason, set_by = excluded.set_by, at = excluded.at
  where p.until < excluded.until;
  if found then
    perform pg_notify('agentmesh_pause', '');
  end if;
end $$;

revoke execute on function agentmesh.pause from public;
