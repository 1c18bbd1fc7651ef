-- A11: look and reserve, but not one after another: neither call sees what the other has reserved.
create or replace function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions, model text, address text, bytes bigint, answer bigint,
  listed_in numeric, listed_out numeric) returns jsonb
language plpgsql as $$
declare
  mine record;
begin
  select * into mine from agentmesh.weigh(me, session, address, bytes / 4, answer, listed_in, listed_out);
  if mine.refused is null and mine.waits is null then
    insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd)
    values (me.id, session.id, me.epoch, mine.tokens, mine.cost_usd) on conflict (agent_id) do nothing;
    return jsonb_build_object('answer', mine.allowed);
  end if;
  return jsonb_build_object('refused', mine.refused, 'waits', mine.waits);
end $$;
