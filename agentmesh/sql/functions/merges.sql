create function agentmesh.merge_sides(target_agent uuid, source_agent uuid) returns agentmesh.sides
language plpgsql stable as $$
declare
  sides agentmesh.sides;
  theirs_agent agentmesh.agents;
  ours_agent agentmesh.agents;
  into_ws agentmesh.workspaces;
  of_ws agentmesh.workspaces;
begin
  select * into theirs_agent from agentmesh.agents a where a.id = merge_sides.source_agent;
  perform agentmesh.require_agent(theirs_agent, merge_sides.source_agent);
  select * into of_ws from agentmesh.workspaces w where w.id = theirs_agent.workspace_id;
  if merge_sides.target_agent is null then
    select * into into_ws from agentmesh.workspaces w where w.id = agentmesh.origin_of(of_ws.id);
    if into_ws.id is null then
      perform agentmesh.refuse('AM084', format('%s works in the session''s directory: it has no tree of its own', agentmesh.label(theirs_agent)),
        'There is nothing to merge: its changes are there already.');
    end if;
  else
    select * into ours_agent from agentmesh.agents a where a.id = merge_sides.target_agent;
    perform agentmesh.require_agent(ours_agent, merge_sides.target_agent);
    if ours_agent.session_id <> theirs_agent.session_id then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(theirs_agent)), 'Agents reach only their own session.');
    end if;
    select * into into_ws from agentmesh.workspaces w where w.id = ours_agent.workspace_id;
  end if;
  if into_ws.id = of_ws.id then
    perform agentmesh.refuse('AM084', format('%s and %s work in the same files', agentmesh.label(theirs_agent), agentmesh.label(ours_agent)),
      'There is nothing to merge: the changes of each are there already.');
  elsif agentmesh.origin_of(of_ws.id) = into_ws.id then
    sides.is_up := true;
  elsif agentmesh.origin_of(into_ws.id) = of_ws.id then
    sides.is_up := false;
  else
    perform agentmesh.refuse('AM084', format('the files of %s were not made from those of %s', agentmesh.label(theirs_agent), agentmesh.label(ours_agent)),
      'Files are merged only between an agent''s own tree and the one that it was made from, step by step.');
  end if;
  sides.base := case when sides.is_up then of_ws.base else into_ws.base end;
  if into_ws.state <> 'ready' then
    perform agentmesh.refuse('AM084', format('the tree that it would be merged into is %s', into_ws.state), 'It is made when its agent runs first.');
  elsif sides.base is null then
    perform agentmesh.refuse('AM084', format('the tree of %s is %s: it has changed nothing', agentmesh.label(theirs_agent), of_ws.state), 'Merge it when it has worked.');
  end if;
  sides.target := into_ws.id;
  sides.source := of_ws.id;
  sides.ours := into_ws.head;
  sides.theirs := of_ws.head;
  return sides;
end $$;

comment on function agentmesh.merge_sides is
  'The two workspaces of a merge, the tree that they have in common and the newest of each; refused if one was not made from the other. target_agent null: into the workspace that the source was made from.';

create function agentmesh.merge_above(agent uuid) returns uuid
language plpgsql stable as $$
begin
  return (
    select a.id from agentmesh.ancestors(merge_above.agent) l join agentmesh.agents a on a.id = l.agent_id
    where a.workspace_id = (agentmesh.merge_sides(null, merge_above.agent)).target order by l.generation limit 1);
end $$;

comment on function agentmesh.merge_above is
  'The nearest ancestor of an agent that works in the files which the agent''s own tree was made from; null if none does.';

create function agentmesh.lock_merge(by uuid, caller agentmesh.caller, agents uuid[], workspaces uuid[]) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_agents(agents || by);
  if caller.worker_id is not null then
    select * into me from agentmesh.agents a where a.id = by;
    perform agentmesh.fence(me, caller);
  end if;
  perform agentmesh.lock_workspaces(workspaces);
end $$;

comment on function agentmesh.lock_merge is 'Lock all that a merge touches, in order: the agents, then the workspaces. With a caller, its agent is checked.';

create function agentmesh.merge_of_call(by uuid, caller agentmesh.caller) returns agentmesh.merges
language sql stable as $$
  select m from agentmesh.merges m where m.by_agent = by and m.seq = caller.seq and m.ordinal = caller.ordinal
$$;

comment on function agentmesh.merge_of_call is 'The merge that a tool call has asked for already, if any.';

create function agentmesh.add_merge(sides agentmesh.sides, by uuid, caller agentmesh.caller, plan jsonb, state text, reason text, conflicts jsonb) returns agentmesh.merges
language plpgsql as $$
#variable_conflict use_column
declare
  made agentmesh.merges;
begin
  insert into agentmesh.merges as m (session_id, source, target, source_agent, target_agent, by_agent, seq, ordinal, is_up, base, ours, theirs, result,
    base_before, state, check_command, check_exit, files, conflicts, reason, ended_at)
  values ((select a.session_id from agentmesh.agents a where a.id = (plan ->> 'source_agent')::uuid), sides.source, sides.target,
    (plan ->> 'source_agent')::uuid, (plan ->> 'target_agent')::uuid, by, (add_merge.caller).seq, (add_merge.caller).ordinal, sides.is_up, plan ->> 'base',
    plan ->> 'ours', plan ->> 'theirs', plan ->> 'result', sides.base, add_merge.state, left(plan ->> 'check_command', 4000), (plan ->> 'check_exit')::integer,
    coalesce(jsonb_path_query_array(plan, '$.files[0 to 1999]'), '[]'), coalesce(add_merge.conflicts, '[]'), add_merge.reason,
    case when add_merge.state <> 'writing' then clock_timestamp() end)
  returning m.* into made;
  return made;
end $$;

comment on function agentmesh.add_merge is 'Store a merge between two locked workspaces.';

create function agentmesh.require_plan(sides agentmesh.sides, plan jsonb) returns void
language plpgsql as $$
begin
  if sides.base is distinct from plan ->> 'base' or sides.ours is distinct from plan ->> 'ours' or sides.theirs is distinct from plan ->> 'theirs' then
    perform agentmesh.refuse('AM081', 'the files have changed since they were merged', 'Take snapshots of both, and merge them again.');
  end if;
end $$;

comment on function agentmesh.require_plan is 'Refuse a merge that was made of older trees than the two workspaces have now.';

create function agentmesh.merge_begin(by uuid, caller agentmesh.caller, plan jsonb) returns agentmesh.merges
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
  sides := agentmesh.merge_sides(into_agent, of_agent);
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

comment on function agentmesh.merge_begin is
  'Store a merge that is about to be written into the target''s files: {"target_agent", "source_agent", "base", "ours", "theirs", "result", "files", "check_command", "check_exit"}. by: the agent whose call or client asks; null: a person. The same call returns the same merge. Returns its row.';

create function agentmesh.lock_merge_again(merge bigint, by uuid, caller agentmesh.caller) returns agentmesh.merges
language plpgsql as $$
declare
  it agentmesh.merges;
begin
  select * into it from agentmesh.merges m where m.id = merge;
  if it.id is null then
    perform agentmesh.refuse('AM083', format('there is no merge %s', coalesce(merge::text, 'null')), 'agentmesh.v_merges lists them.');
  end if;
  perform agentmesh.lock_merge(by, caller, array[it.source_agent, it.target_agent, it.by_agent], array[it.source, it.target]);
  select * into it from agentmesh.merges m where m.id = merge;
  return it;
end $$;

comment on function agentmesh.lock_merge_again is 'Lock all that a stored merge touches, and return its row as it is then.';

create function agentmesh.own_side(merge agentmesh.merges) returns uuid
language sql immutable as $$
  select case when merge.is_up then merge.source else merge.target end
$$;

comment on function agentmesh.own_side is 'The workspace of a merge that was made from the other: its base moves.';

create function agentmesh.merge_end(merge bigint, by uuid, caller agentmesh.caller, result jsonb, snapshot jsonb, ref text, told_source text, told_target text)
returns agentmesh.merges
language plpgsql as $$
#variable_conflict use_column
declare
  it agentmesh.merges := agentmesh.lock_merge_again(merge, by, caller);
  head text := (select w.head from agentmesh.workspaces w where w.id = it.target);
  taken jsonb := coalesce(merge_end.snapshot, jsonb_build_object('tree', it.result, 'before', it.ours, 'ref', ref, 'changes', it.files,
    'added', (select sum((f ->> 2)::bigint) from jsonb_array_elements(it.files) f), 'removed', (select sum((f ->> 3)::bigint) from jsonb_array_elements(it.files) f)));
begin
  if it.state = 'refused' then
    perform agentmesh.refuse('AM083', format('merge %s was refused', it.id), 'Merge again.');
  elsif it.state <> 'writing' then
    return it;
  elsif head is distinct from taken ->> 'before' then
    perform agentmesh.refuse('AM081', 'the files have a newer snapshot', 'Look again, and end the merge with what is there now.');
  end if;
  perform agentmesh.add_snapshot(it.target, it.source_agent, null, null, 'merge', taken, it.id, clock_timestamp());
  update agentmesh.workspaces w set base = it.theirs where w.id = agentmesh.own_side(it) and w.base is distinct from it.theirs;
  update agentmesh.merges m set state = 'done', ended_at = clock_timestamp() where m.id = it.id returning m.* into it;
  perform agentmesh.give_up_leases(array[it.source_agent]);
  update agentmesh.agents a set holds_lease = false where a.id = it.source_agent and a.holds_lease;
  perform agentmesh.tell_quietly(it.source_agent, coalesce(it.target_agent, it.by_agent), told_source) where it.by_agent is distinct from it.source_agent;
  perform agentmesh.tell_quietly(it.target_agent, it.source_agent, told_target) where it.by_agent is distinct from it.target_agent;
  perform agentmesh.close_merge_call(by, caller, merge_end.result);
  perform pg_notify('session_event_' || it.session_id, 'step ' || a) from unnest(array[it.source_agent, it.target_agent]) a where a is not null;
  return it;
end $$;

comment on function agentmesh.merge_end is
  'A merge is in the target''s files: its snapshot, the base of the own side, mail to both sides, the call''s result, in one commit. snapshot: what is there now, if it is not just the merge''s result. Returns its row.';

create function agentmesh.merge_refused(merge bigint, by uuid, caller agentmesh.caller, plan jsonb, reason text, conflicts jsonb, result jsonb, told text)
returns agentmesh.merges
language plpgsql as $$
#variable_conflict use_column
-- The same call, or a person's same merge again, returns the stored row, and tells nobody twice.
declare
  into_agent uuid := (plan ->> 'target_agent')::uuid;
  of_agent uuid := (plan ->> 'source_agent')::uuid;
  sides agentmesh.sides;
  it agentmesh.merges;
begin
  if merge is not null then
    it := agentmesh.lock_merge_again(merge, by, caller);
  else
    sides := agentmesh.merge_sides(into_agent, of_agent);
    perform agentmesh.lock_merge(by, caller, array[into_agent, of_agent], array[sides.target, sides.source]);
    it := agentmesh.merge_of_call(by, caller);
    if it.id is null and (caller).seq is null then
      select * into it from agentmesh.merges m
      where m.target = sides.target and m.source = sides.source and m.by_agent is not distinct from by and m.seq is null and m.state = 'refused'
        and (m.base, m.ours, m.theirs) = (plan ->> 'base', plan ->> 'ours', plan ->> 'theirs') and m.reason = merge_refused.reason order by m.id desc limit 1;
    end if;
  end if;
  if it.state in ('done', 'undone') then
    perform agentmesh.refuse('AM083', format('merge %s is done', it.id), 'Undo it, if that is what you want.');
  elsif it.state = 'refused' then
    return it;
  elsif it.id is not null then
    update agentmesh.merges m set state = 'refused', reason = merge_refused.reason, conflicts = coalesce(merge_refused.conflicts, '[]'), ended_at = clock_timestamp()
    where m.id = it.id returning m.* into it;
  else
    if (caller).worker_id is not null then
      perform agentmesh.require_open_call(by, caller, heeds => false);
    end if;
    sides := agentmesh.merge_sides(into_agent, of_agent);
    it := agentmesh.add_merge(sides, by, caller, plan, 'refused', reason, conflicts);
  end if;
  perform agentmesh.tell_owner(it, told);
  perform agentmesh.close_merge_call(by, caller, merge_refused.result);
  return it;
end $$;

comment on function agentmesh.merge_refused is
  'A merge was refused, and nothing of the target is changed: the owner of the own side is told, which wakes it, and the call gets its result. merge: one that was begun; otherwise plan is what merge_begin takes. Returns its row.';

create function agentmesh.close_merge_call(by uuid, caller agentmesh.caller, result jsonb) returns void
language plpgsql as $$
begin
  if result is not null and exists (
      select from agentmesh.tool_calls c where c.agent_id = by and c.seq = (close_merge_call.caller).seq and c.ordinal = (close_merge_call.caller).ordinal and c.status <> 'done') then
    perform agentmesh.close_call(by, caller, result);
    perform pg_notify('session_event_' || a.session_id, 'step ' || a.id) from agentmesh.agents a where a.id = by;
  end if;
end $$;

comment on function agentmesh.close_merge_call is 'Write the result of the call that asked for a merge, if there is one that has none yet.';

create function agentmesh.tell_quietly(recipient uuid, sender uuid, body text, about text default 'merge') returns bigint
language plpgsql as $$
#variable_conflict use_column
-- An idle agent has it as a row at once, and needs no turn to read it. Nobody dead is told, or tells.
declare
  to_agent agentmesh.agents;
  from_id uuid := (select a.id from agentmesh.agents a where a.id = tell_quietly.sender and a.status <> 'dead');
  mail_id bigint;
begin
  select * into to_agent from agentmesh.agents a where a.id = tell_quietly.recipient and a.status <> 'dead';
  if to_agent.id is null or coalesce(tell_quietly.body, '') = '' then
    return null;
  end if;
  insert into agentmesh.mail (session_id, sender, recipient, body, automatic, about)
  values (to_agent.session_id, nullif(from_id, to_agent.id), to_agent.id, agentmesh.fitting(tell_quietly.body), true, tell_quietly.about)
  returning id into mail_id;
  if to_agent.status = 'idle' and not to_agent.external then
    perform agentmesh.read_mail(to_agent, array[mail_id]);
  else
    perform pg_notify('session_event_' || to_agent.session_id, 'mail ' || to_agent.id);
  end if;
  return mail_id;
end $$;

comment on function agentmesh.tell_quietly is 'Tell a locked agent of a merge, or of what about names, by an automatic mail that does not wake it; returns its id, null if nobody is told.';

create function agentmesh.tell_owner(merge agentmesh.merges, told text) returns void
language plpgsql as $$
declare
  owner agentmesh.agents;
  from_id uuid := (select a.id from agentmesh.agents a where a.id = merge.by_agent and a.status <> 'dead');
begin
  select * into owner from agentmesh.agents a
  where a.id = case when merge.is_up then merge.source_agent else merge.target_agent end and a.status <> 'dead' and a.id is distinct from merge.by_agent;
  if owner.id is not null and coalesce(btrim(told), '') <> '' then
    perform agentmesh.deliver(owner, from_id, agentmesh.fitting(told));
  end if;
end $$;

comment on function agentmesh.tell_owner is 'Tell an agent why its own tree did not fit, in the name of the asker; nobody, if the agent asked itself or is dead.';

create function agentmesh.undo_merges(workspace uuid, ids bigint[], snapshot bigint) returns void
language plpgsql as $$
#variable_conflict use_column
-- The newest first. The base goes back only if no later merge has moved it.
declare
  it agentmesh.merges;
begin
  for it in select * from agentmesh.merges m where m.id = any (ids) and m.target = undo_merges.workspace and m.state = 'done' order by m.id desc loop
    update agentmesh.workspaces w set base = it.base_before where w.id = agentmesh.own_side(it) and w.base = it.theirs;
    update agentmesh.merges m set state = 'undone', undone_at = clock_timestamp(), undone_by = undo_merges.snapshot where m.id = it.id;
  end loop;
end $$;

comment on function agentmesh.undo_merges is 'The files of these merges are no longer in their locked target; its snapshot shows that.';

create function agentmesh.redo_merges(workspace uuid, ids bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  it agentmesh.merges;
begin
  for it in select * from agentmesh.merges m where m.id = any (ids) and m.target = redo_merges.workspace and m.state = 'undone' order by m.id loop
    update agentmesh.workspaces w set base = it.theirs where w.id = agentmesh.own_side(it) and w.base = it.base_before;
    update agentmesh.merges m set state = 'done', undone_at = null, undone_by = null where m.id = it.id;
  end loop;
end $$;

comment on function agentmesh.redo_merges is 'The files of these undone merges are in their locked target again.';
