alter function agentmesh.send reset all;
alter function agentmesh.begin_step reset enable_seqscan reset enable_bitmapscan;
alter function agentmesh.end_turn reset all;
alter function agentmesh.take reset all;
alter function agentmesh.wait_look reset all;
alter function agentmesh.wait_look_anyone reset all;
alter function agentmesh.wait_may_end reset all;

-- An agent's place in the tree: its name after those of its ancestors, as in root/reader/helper.
create or replace function agentmesh.path(agent uuid) returns text
language sql stable security definer set search_path = pg_catalog as $$
  select string_agg(a.name, '/' order by l.generation desc) from agentmesh.ancestors(agent) l join agentmesh.agents a on a.id = l.agent_id
$$;

drop index agentmesh.transcript_events;
-- after which rows older ones are not sent any more (docs/explanation/architecture.md, "What the model is sent")
create index transcript_resets on agentmesh.transcript (agent_id, seq)
  where kind = 'summary' or (kind = 'event' and content ->> 'event' in ('cleared', 'rewound'));
create index transcript_capture on agentmesh.transcript (agent_id, seq)
  where kind = 'event' and content ->> 'event' in ('capture_begun', 'capture_ended');
create index transcript_marks on agentmesh.transcript (agent_id, seq) where kind = 'mark';
