-- A11: look and reserve, but not one after another: neither call sees what the other has reserved.
create or replace function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions) returns jsonb
language plpgsql as $$
declare
  mine record;
  refusal jsonb;
begin
  select * into mine from agentmesh.estimate(me.id);
  refusal := agentmesh.budget_refusal(me, session, mine.tokens, mine.cost_usd);
  if refusal is null then
    insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd)
    values (me.id, session.id, me.epoch, mine.tokens, mine.cost_usd) on conflict (agent_id) do nothing;
  end if;
  return refusal;
end $$;
