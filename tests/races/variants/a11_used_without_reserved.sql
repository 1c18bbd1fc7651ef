-- A11: under the lock, but with what is used alone: a budget that is checked and not reserved.
create or replace function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions) returns jsonb
language plpgsql as $$
declare
  mine record;
begin
  select * into mine from agentmesh.estimate(me.id);
  insert into agentmesh.session_usage (session_id) values (session.id) on conflict do nothing;
  perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  return agentmesh.budget_refusal(me, session, mine.tokens, mine.cost_usd);
end $$;
