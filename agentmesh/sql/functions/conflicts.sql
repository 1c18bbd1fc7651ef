create function agentmesh.note_conflicts(one uuid, other uuid, paths text[], second uuid) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_workspaces(array[one, other]);
  insert into agentmesh.conflicts as c (a, b, path, second)
  select least(one, other), greatest(one, other), p, note_conflicts.second from unnest(note_conflicts.paths) p
  on conflict (a, b, hashtextextended(path, 0)) do update set over_at = null where c.over_at is not null;
  update agentmesh.conflicts c set over_at = clock_timestamp()
  where c.a = least(one, other) and c.b = greatest(one, other) and c.over_at is null and c.path <> all (note_conflicts.paths);
end $$;

comment on function agentmesh.note_conflicts is
  'Store all files in which two workspaces now conflict; others of the pair are over. second is told each once.';

create function agentmesh.conflicts_told(ids bigint[]) returns void
language sql as $$
  update agentmesh.conflicts c set told_at = clock_timestamp() where c.id = any (ids) and c.told_at is null
$$;

comment on function agentmesh.conflicts_told is 'These conflicts were told to the agent that wrote last.';
