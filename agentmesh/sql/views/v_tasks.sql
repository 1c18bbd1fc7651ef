create view agentmesh.v_tasks with (security_barrier) as
  select a.session_id, t.parent, p.name as parent_name, t.child, a.name as child_name, t.description, coalesce(t.status, 'running') as status,
    t.result, t.attempts, t.background, t.started_at, t.ended_at,
    coalesce(lead(t.cost_before) over (partition by t.child order by t.started_at), a.cost_usd) - t.cost_before as cost_usd,
    t.check_command, t.check_exit
  from agentmesh.tasks t
  join agentmesh.agents a on a.id = t.child
  join agentmesh.agents p on p.id = t.parent;

comment on view agentmesh.v_tasks is
  'All tasks. result: what the sub-agent reported, for a task with a schema; null if it has none, and for others, whose text is the result of the parent''s call. attempts: calls of report, and turns that ended without one. check_command: what must exit with 0 before the report is taken; check_exit: how its newest run ended.';
