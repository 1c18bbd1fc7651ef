create view agentmesh.v_conflicts with (security_barrier) as
  select s.session_id, c.id, c.path, c.second, s.name as second_name, o.id as other, o.name as other_name, c.a, c.b, c.found_at, c.told_at
  from agentmesh.conflicts c
  join agentmesh.agents s on s.id = c.second
  join agentmesh.workspaces x on x.id = c.a and x.state = 'ready'
  join agentmesh.workspaces y on y.id = c.b and y.state = 'ready'
  left join lateral (
    select a.id, a.name from agentmesh.agents a where a.workspace_id = case when s.workspace_id = c.a then c.b else c.a end and a.status <> 'dead'
    order by a.created_at, a.id limit 1) o on true
  where c.over_at is null;

comment on view agentmesh.v_conflicts is
  'Files that two agents changed, in trees of their own, in ways that do not fit. second: the agent that changed it last, and is told (told_at); other: an agent that works in the other tree.';
