create view agentmesh.v_requests with (security_barrier) as
  select r.id, r.session_id, r.agent_id, a.name, agentmesh.path(a.id) as path, r.kind, r.tool, r.arguments, r.reason, r.rules, r.question, r.options, r.agents,
    case when r.answered_at is not null then 'answered' when r.cancelled_at is not null then 'cancelled' else 'pending' end as state,
    r.asked_at, r.answer, r.answered_at, r.answered_by, r.cancelled_at
  from agentmesh.requests r join agentmesh.agents a on a.id = r.agent_id;

comment on view agentmesh.v_requests is
  'Requests of agents to a person, past and present: approvals of calls, and questions. agents: how many the calls of its step would start, if it is about that. state is pending, answered or cancelled.';
