create view agentmesh.v_timeline with (security_barrier) as
  select a.session_id, t.created_at as at, t.agent_id, a.name, t.kind as what, t.seq as ref,
    left(coalesce(t.content ->> 'text', t.content ->> 'error', t.content ->> 'result', t.content ->> 'command', ''), 200) as detail
  from agentmesh.transcript t join agentmesh.agents a on a.id = t.agent_id
  union all
  select m.session_id, m.sent_at, m.sender, coalesce(s.name, 'user'), 'send', m.id, 'to ' || r.name || ': ' || left(m.body, 180)
  from agentmesh.mail m join agentmesh.agents r on r.id = m.recipient left join agentmesh.agents s on s.id = m.sender
  union all
  select a.session_id, c.started_at, c.agent_id, a.name, 'call ' || c.name, c.seq, left(c.arguments, 200)
  from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id where c.started_at is not null
  union all
  select a.session_id, c.ended_at, c.agent_id, a.name, 'model', c.id,
    c.model || ': ' || (c.input_tokens - c.cached_tokens + c.output_tokens) || ' tokens' || coalesce(', ' || c.error, '')
  from agentmesh.model_calls c join agentmesh.agents a on a.id = c.agent_id;

comment on view agentmesh.v_timeline is 'What each agent did and when, for people; the order of rows of different agents is for display only.';
