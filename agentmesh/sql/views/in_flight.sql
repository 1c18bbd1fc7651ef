create view agentmesh.in_flight as
  select r.agent_id, r.session_id, r.tokens, r.cost_usd, r.is_first
  from agentmesh.reservations r
  cross join lateral (
    select from agentmesh.agents a
    where a.id = r.agent_id and a.status = 'running' and a.worker_id is not null and a.epoch = r.epoch offset 0) owned
  where not r.waits;

comment on view agentmesh.in_flight is 'Reservations that count. "offset 0": look up each one''s agent; otherwise the planner would hash all agents.';
