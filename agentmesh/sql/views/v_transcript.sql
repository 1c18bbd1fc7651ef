create view agentmesh.v_transcript with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, l.agent_id as written_by, l.generation, l.generation > 0 as inherited, t.seq, t.kind,
    t.kind in ('user', 'assistant', 'tool_result', 'mail', 'summary') as for_model,
    coalesce(t.content ->> 'text', t.content ->> 'error', t.content ->> 'result', t.content ->> 'command') as text, t.content, t.created_at
  from agentmesh.agents a
  cross join lateral agentmesh.lineage(a.id) l
  cross join lateral (select x.* from agentmesh.transcript x where x.agent_id = l.agent_id and x.seq > l.after and x.seq <= l.upto offset 0) t;

comment on view agentmesh.v_transcript is 'An agent''s conversation including what it inherited, in order: (generation desc, seq).';
