create view agentmesh.v_forms with (security_barrier) as
  select a.session_id, f.agent_id, a.name, a.parent_id, p.name as parent_name,
    case when a.status <> 'dead' and (f.status is null or a.owes_report) then 'owed' else coalesce(f.status, 'killed') end as status,
    f.result, f.attempts, f.check_command, f.check_exit, f.ended_at, f.schema
  from agentmesh.forms f
  join agentmesh.agents a on a.id = f.agent_id
  join agentmesh.agents p on p.id = a.parent_id;

comment on view agentmesh.v_forms is
  'Forks whose reports to their parents have a fixed form. status: owed, reported, failed (after three misses) or killed. result: the newest report. attempts: calls of report for it, and turns that ended without one. check_command: what must exit with 0 before a report is taken; check_exit: how its newest run ended.';
