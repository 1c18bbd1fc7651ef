create view agentmesh.v_merges with (security_barrier) as
  select m.id, m.session_id, m.source, m.target, m.source_agent, s.name as source_name, m.target_agent, t.name as target_name, m.by_agent,
    coalesce(b.name, 'user') as by_name, m.state, m.reason, jsonb_array_length(m.files) as files, m.conflicts, m.check_command, m.check_exit,
    m.base, m.ours, m.theirs, m.result, m.started_at, m.ended_at, m.undone_at
  from agentmesh.merges m
  join agentmesh.agents s on s.id = m.source_agent
  left join agentmesh.agents t on t.id = m.target_agent
  left join agentmesh.agents b on b.id = m.by_agent;

comment on view agentmesh.v_merges is
  'Merges of one agent''s files (source) into another''s (target): state is writing, done, refused (reason says why) or undone. by_agent: the agent that asked for it, null for a person. base, ours, theirs and result are trees of Git''s.';
