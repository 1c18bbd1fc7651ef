create function agentmesh.halt(agent uuid, caller agentmesh.caller, result jsonb) returns text
language plpgsql as $$
-- One commit: the report, and the ends of all others. Their owners stop later, as after any interrupt; an agent that no
-- worker has stops now.
declare
  me agentmesh.agents;
  top uuid;
  team uuid[];
  words text;
  now_is text;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = halt.agent));
  top := agentmesh.top_of_work(halt.agent);
  perform agentmesh.lock_agents(array(select agentmesh.subtree(top)));
  select * into me from agentmesh.agents a where a.id = halt.agent;
  perform agentmesh.fence(me, halt.caller);
  perform agentmesh.require_open_call(me.id, halt.caller);
  if not me.may_halt then
    perform agentmesh.refuse('AM042', format('%s may not halt the work', agentmesh.label(me)), 'Leave halt out: say in the report what is wrong.');
  elsif agentmesh.top_of_work(me.id) is distinct from top then
    perform agentmesh.refuse('40001', 'the agents above it were told something else in this instant', 'Call again.');
  elsif top = me.id then
    perform agentmesh.refuse('AM042', format('%s works for no agent now, so there is no work to halt', agentmesh.label(me)), 'Leave halt out.');
  end if;
  words := format('%s halted the work: %s', me.name, agentmesh.reason_of(halt.result));
  team := array(select agentmesh.team_of(me.id, top));
  perform agentmesh.stop_batches(team || me.id);  -- before the report, which would begin the next item
  now_is := agentmesh.report(me.id, halt.caller, halt.result);
  perform agentmesh.halt_one(t.id, me.id, words) from unnest(team) with ordinality as t (id, n) order by t.n;
  return now_is;
end $$;

comment on function agentmesh.halt is
  'Take an agent''s report, as report does, and end the work of the agents above it. These are all up to the first one that works for a person, and all that work for these. Other agents that work for a person go on. Returns the agent''s status.';

create function agentmesh.halt_one(agent uuid, halted_by uuid, words text) returns void
language plpgsql as $$
begin
  -- An agent above may be idle, or was just woken by a report. It gets its row too, in a turn that ends at once.
  update agentmesh.agents a set status = 'running', turn = a.turn + 1, queued_at = clock_timestamp()
  where a.id = agent and a.status = 'idle' and not a.external;
  perform agentmesh.interrupt_one(agent, halted_by, words);
end $$;

comment on function agentmesh.halt_one is 'End the turn of one locked agent with these words.';

create function agentmesh.works_for_parent(me agentmesh.agents) returns boolean
language sql stable as $$
  select me.parent_id is not null and (me.owes_report
    or exists (select from agentmesh.tasks t where t.child = me.id and t.ended_at is null)
    or not agentmesh.works_for_user(me) and not exists (
      select from agentmesh.mail m where m.recipient = me.id and m.sender is null and not m.automatic and m.read_at is null and m.withdrawn_at is null))
$$;

comment on function agentmesh.works_for_parent is
  'Whether an agent works for its parent. That is so if it owes it a report or works on a task of it, and if no newer message than its parent''s is from a person.';

create function agentmesh.top_of_work(agent uuid) returns uuid
language plpgsql stable as $$
declare
  it agentmesh.agents;
begin
  loop
    select * into it from agentmesh.agents a where a.id = coalesce(it.parent_id, top_of_work.agent);
    exit when not agentmesh.works_for_parent(it);
  end loop;
  return it.id;
end $$;

comment on function agentmesh.top_of_work is 'The nearest ancestor that works for a person; the agent itself if it works for no parent.';

create function agentmesh.team_of(agent uuid, top uuid) returns setof uuid
language sql stable set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
  with recursive above (id, parent_id) as (
    select a.id, a.parent_id from agentmesh.agents a where a.id = team_of.agent
    union all
    select p.id, p.parent_id from above join agentmesh.agents p on p.id = above.parent_id where above.id <> team_of.top),
  below (id, depth, is_running) as (
    select a.id, a.depth, a.status = 'running' from agentmesh.agents a where a.id = team_of.top
    union all
    select a.id, a.depth, a.status = 'running' from below join agentmesh.agents a on a.parent_id = below.id
    where a.status <> 'dead' and agentmesh.works_for_parent(a))
  select b.id from below b where b.id <> team_of.agent and (b.is_running or b.id in (select a.id from above a)) order by b.depth desc, b.id
$$;

comment on function agentmesh.team_of is 'The agents between an agent and the top of its work, and all that run for these, the deepest first; not the agent.';

create function agentmesh.reason_of(result jsonb) returns text
language sql immutable as $$
  select case when length(said) > 4000 then agentmesh.shortened(said, 4000) else said end
  from (select case when result - 'result' = '{}' and jsonb_typeof(result -> 'result') = 'string' then result ->> 'result' else result::text end as said) r
$$;

comment on function agentmesh.reason_of is 'A report in words: its one text, otherwise its JSON.';

create function agentmesh.is_halted(me agentmesh.agents) returns boolean
language sql immutable as $$
  select coalesce(me.halted is not null and me.interrupt_turn = me.turn, false)
$$;

comment on function agentmesh.is_halted is 'Whether an agent below has ended the agent''s last turn, or ends it as soon as its worker stops.';

create function agentmesh.unless_halted(me agentmesh.agents, inout ended bigint, inout output text, inout failed boolean)
language plpgsql as $$
begin
  if agentmesh.is_halted(me) then
    output := me.halted;
    failed := true;
    ended := agentmesh.append(me.id, 'error', jsonb_build_object('error', me.halted, 'kind', 'halted', 'hint', 'Write to it what it should do now.'));
  end if;
end $$;

comment on function agentmesh.unless_halted is
  'How the turn of a locked agent ends: as given or, if an agent below has halted the work, with an error that says so. Its answer may have come in the same instant; then it stays, above the error.';
