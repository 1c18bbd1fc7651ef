create view agentmesh.v_workspaces with (security_barrier) as
  select w.id, w.session_id, w.kind, w.state, w.path, w.host, w.os_user, w.repository, w.problem, w.origin, w.base, w.head,
    coalesce(u.agents, '{}') as agents, coalesce(k.snapshots, 0) as snapshots, w.created_at, w.ready_at, w.removed_at
  from agentmesh.workspaces w
  left join lateral (
    select array_agg(n.name order by n.created_at, n.id) as agents from (
      select a.name, a.created_at, a.id from agentmesh.agents a where a.workspace_id = w.id and a.status <> 'dead' limit 100) n) u on true
  left join lateral (
    select count(*) as snapshots from agentmesh.snapshots s where s.workspace_id = w.id and s.ref is not null and s.freed_at is null) k on true;

comment on view agentmesh.v_workspaces is
  'Directories in which agents work: shared is the session''s, own a tree of an agent''s own. state is planned, ready, failed, removing or removed. agents: living agents that work there, at most 100; snapshots: how many are kept. base: the tree that it has in common with its origin; head: its newest.';
