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

comment on function agentmesh.pause is
  'Make all workers leave a model alone for so many seconds (an hour at most); an existing pause that ends later stays.';
