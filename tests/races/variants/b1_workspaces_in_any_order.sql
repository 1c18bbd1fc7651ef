-- Workspaces are locked in another order than by id.
create or replace function agentmesh.lock_workspaces(ids uuid[]) returns setof agentmesh.workspaces
language sql as $$
  select * from agentmesh.workspaces where id = any (ids) order by id desc for no key update
$$;
