-- The trees are looked at before the lock, and not again.
create or replace function agentmesh.merge_begin(by uuid, caller agentmesh.caller, plan jsonb) returns agentmesh.merges
language plpgsql as $$
#variable_conflict use_column
declare
  into_agent uuid := (plan ->> 'target_agent')::uuid;
  of_agent uuid := (plan ->> 'source_agent')::uuid;
  sides agentmesh.sides;
  known agentmesh.merges;
begin
  sides := agentmesh.merge_sides(into_agent, of_agent);
  perform agentmesh.lock_merge(by, caller, array[into_agent, of_agent], array[sides.target, sides.source]);
  known := agentmesh.merge_of_call(by, caller);
  if known.id is not null then
    return known;
  end if;
  if (caller).worker_id is not null then
    perform agentmesh.require_open_call(by, caller);
  end if;
  select * into known from agentmesh.merges m
  where m.state = 'writing' and (m.target = sides.target or (m.target, m.source) = (sides.source, sides.target)) order by m.id limit 1;
  if known.id is not null then
    if (caller).seq is null and known.seq is null and known.by_agent is not distinct from by and known.source = sides.source
        and (known.base, known.ours, known.theirs, known.result) = (plan ->> 'base', plan ->> 'ours', plan ->> 'theirs', plan ->> 'result') then
      return known;  -- the same again
    end if;
    perform agentmesh.refuse('AM082', 'another merge is being written into these files', 'Do it again in a moment. If nobody is at work: agentmesh workspaces --repair.');
  end if;
  perform agentmesh.require_plan(sides, plan);
  if plan ->> 'result' is null then
    perform agentmesh.refuse('AM004', 'the merge has no result', 'Give the tree that it made.');
  end if;
  perform agentmesh.require_tree(plan ->> 'result');
  return agentmesh.add_merge(sides, by, caller, plan, 'writing', null, null);
end $$;
