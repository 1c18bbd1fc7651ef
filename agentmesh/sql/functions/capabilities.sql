create function agentmesh.learn_capability(provider text, address text, model text, facts jsonb, set_by text) returns void
language plpgsql as $$
#variable_conflict use_column
-- Nothing that matters is lost with such a row: it is found out once more.
begin
  perform set_config('synchronous_commit', 'off', true);
  insert into agentmesh.capabilities as c (provider, address, model, streams, needs_choice, forced_calls, slots, context_window, caches, set_by)
  select learn_capability.provider, learn_capability.address, learn_capability.model, f.*, learn_capability.set_by
  from jsonb_to_record(learn_capability.facts) f (streams boolean, needs_choice boolean, forced_calls text, slots integer, context_window integer, caches boolean)
  on conflict (provider, address, model) do update set
    streams = coalesce(excluded.streams, c.streams), needs_choice = coalesce(excluded.needs_choice, c.needs_choice),
    forced_calls = coalesce(excluded.forced_calls, c.forced_calls), slots = coalesce(excluded.slots, c.slots),
    context_window = coalesce(excluded.context_window, c.context_window), caches = coalesce(excluded.caches, c.caches),
    set_by = excluded.set_by, at = excluded.at;
  perform pg_notify('agentmesh_pause', '');
end $$;

comment on function agentmesh.learn_capability is
  'Tell all workers what a model server was seen to do. facts has the columns of capabilities that are known now, as JSON; what else is known stays. They read it when they hear of a pause.';
