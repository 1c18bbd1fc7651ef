-- name: owed
-- The form of the report that an agent owes for the task that it works on, or as a fork.
select d.schema, d.check_command, d.check_approved, a.may_halt, a.permissions, agentmesh.allowance(a.session_id) as allowance
from agentmesh.agents a cross join lateral (
  select t.schema, t.check_command, t.check_approved from agentmesh.tasks t where t.child = a.id and t.ended_at is null and t.schema is not null
  union all
  select f.schema, f.check_command, f.check_approved from agentmesh.forms f where f.agent_id = a.id
  limit 1) d
where a.id = %(agent)s;

-- name: reported
-- The newest report of an agent: a fork's, or that of the newest task of a sub-agent. refused: what was wrong with its
-- newest call of report.
select r.status, r.result, r.attempts, r.check_exit, (
  select t.content #>> '{result,error}' from agentmesh.transcript t
  where t.agent_id = %(agent)s and t.kind = 'tool_result' and t.content ->> 'name' = 'report' order by t.seq desc limit 1) as refused
from (
  select case when a.owes_report or f.status is null then 'owed' else f.status end as status, f.result, f.attempts, f.check_exit
  from agentmesh.forms f join agentmesh.agents a on a.id = f.agent_id where f.agent_id = %(agent)s
  union all
  (select coalesce(t.status, 'owed'), t.result, t.attempts, t.check_exit from agentmesh.tasks t
   where t.child = %(agent)s and t.schema is not null order by t.started_at desc limit 1)) r
limit 1;

-- name: rights
-- The rights of an agent now: its own rules, and the session's part.
select a.permissions, agentmesh.allowance(a.session_id) as allowance from agentmesh.agents a where a.id = %(agent)s;
