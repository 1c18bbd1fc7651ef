create function agentmesh.take_slot(agent uuid, model text, key text, tokens integer, slots integer, patience double precision) returns double precision
language plpgsql as $$
#variable_conflict use_column
-- A server keeps one conversation in each slot. Agents with the same prefix that ask at once take several slots, and each slot reads the whole prefix.
-- So they take turns, but nobody waits longer than such a reading takes.
declare
  me agentmesh.agents;
  mine agentmesh.slots;
  busy integer;
  alike integer;
begin
  perform set_config('synchronous_commit', 'off', true);
  -- Two that come together must see each other. Readers cannot take this lock.
  lock table agentmesh.slots in share row exclusive mode;
  select * into me from agentmesh.agents a where a.id = take_slot.agent;
  delete from agentmesh.slots s where s.model = take_slot.model
    and not exists (select from agentmesh.agents a where a.id = s.agent_id and a.epoch = s.epoch and a.status = 'running');
  if me.status <> 'running' or me.interrupt_turn = me.turn then
    return 1;  -- its worker is about to hear of that; a call would be paid for nothing
  end if;
  insert into agentmesh.slots as s (agent_id, epoch, model, key, tokens) values (me.id, me.epoch, take_slot.model, take_slot.key, take_slot.tokens)
  on conflict (agent_id) do update set epoch = excluded.epoch, model = excluded.model, key = excluded.key, tokens = excluded.tokens, entered_at = null,
    since = case when s.entered_at is null and s.key = excluded.key then s.since else excluded.since end
  returning s.* into mine;
  select count(*), count(*) filter (where s.key = mine.key) into busy, alike
  from agentmesh.slots s where s.model = take_slot.model and s.entered_at is not null;
  if busy < slots and clock_timestamp() >= mine.since + alike * make_interval(secs => patience) and not exists (
    select from agentmesh.slots deeper where deeper.model = take_slot.model and deeper.entered_at is null and deeper.tokens > mine.tokens
      and not exists (select from agentmesh.slots s where s.model = take_slot.model and s.key = deeper.key and s.entered_at is not null))
  then
    update agentmesh.slots s set entered_at = clock_timestamp() where s.agent_id = me.id;
    return null;
  end if;
  return greatest(extract(epoch from mine.since + alike * make_interval(secs => patience) - clock_timestamp()), 1);
end $$;

comment on function agentmesh.take_slot is
  'Return null if an agent may ask a model now, whose server has so many slots; otherwise the seconds until it may look again, or earlier when another one leaves. Agents with the same key, the prefix that they share, ask one at a time. After patience seconds a second one asks too, after twice as many a third. If several prefixes wait, the longest goes next.';

create function agentmesh.leave_slot(agent uuid) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  its_model text;
begin
  perform set_config('synchronous_commit', 'off', true);
  delete from agentmesh.slots s where s.agent_id = leave_slot.agent returning s.model into its_model;
  if exists (select from agentmesh.slots s where s.model = its_model and s.entered_at is null) then
    perform pg_notify('agentmesh_prefix', its_model);
  end if;
end $$;

comment on function agentmesh.leave_slot is 'Say that an agent''s model call is over, or that it no longer waits for one; those that wait for a slot of the same server look again.';
