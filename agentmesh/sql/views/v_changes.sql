create view agentmesh.v_changes with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, c.path,
    coalesce(sum(c.added) filter (where s.agent_id = a.id), 0)::bigint as added, coalesce(sum(c.removed) filter (where s.agent_id = a.id), 0)::bigint as removed,
    sum(c.added)::bigint as tree_added, sum(c.removed)::bigint as tree_removed, (array_agg(c.status order by s.id desc))[1] as status,
    count(*) as calls, array_agg(distinct s.agent_id) as changed_by, max(s.made_at) as last_at
  from agentmesh.agents a
  cross join lateral agentmesh.subtree(a.id) m (id)
  cross join lateral (select x.id, x.agent_id, x.made_at from agentmesh.snapshots x where x.agent_id = m.id and x.kind = 'call' offset 0) s
  cross join lateral (select y.path, y.status, y.added, y.removed from agentmesh.changes y where y.snapshot_id = s.id offset 0) c
  group by a.session_id, a.id, a.name, c.path;

comment on view agentmesh.v_changes is
  'The files that an agent, or an agent below it, changed by its calls, bash too, as far as snapshots were taken. added and removed: lines by the agent itself; tree_ columns include all its descendants. A change counts even if it was undone since.';
