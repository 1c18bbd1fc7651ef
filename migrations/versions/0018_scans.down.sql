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
