drop view agentmesh.v_budgets;
drop function agentmesh.set_budget, agentmesh.settle, agentmesh.reserve, agentmesh.budget_refusal, agentmesh.cap_refusal, agentmesh.estimate,
  agentmesh.has_capped_agents;
drop view agentmesh.in_flight;
drop table agentmesh.reservations, agentmesh.bookings, agentmesh.session_usage;
alter table agentmesh.agents drop column max_cost_usd, drop column max_tokens;
drop domain agentmesh.cap_usd, agentmesh.cap_tokens;
