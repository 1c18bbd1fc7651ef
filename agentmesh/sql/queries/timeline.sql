-- The activities of each agent as periods of time; v_timeline has the same as moments, for people who ask in SQL.

-- name: lanes
-- The agents of a session, and when each last did something.
select a.id, a.parent_id, a.name, a.status, a.created_at, a.died_at, greatest(a.created_at, a.died_at, l.created_at) as last_at,
  transaction_timestamp() as now
from agentmesh.agents a
left join lateral (select t.created_at from agentmesh.transcript t where t.agent_id = a.id order by t.seq desc limit 1) l on true
where a.session_id = %(session)s order by a.created_at, a.id;

-- name: busy
-- When any of these agents was active, ignoring pauses of less than half a minute. Waiting for others or for a person
-- is no activity.
with doing (began, ended) as (
  select c.ended_at - coalesce(c.latency_ms, 0) * interval '1 ms', c.ended_at from agentmesh.model_calls c where c.agent_id = any (%(agents)s)
  union all
  select s.at, transaction_timestamp() from unnest(%(agents)s::uuid[]) as u (id) cross join agentmesh.calling_since(u.id) as s (at)
  union all
  select coalesce(c.started_at, s.created_at), coalesce(c.ended_at, transaction_timestamp())
  from agentmesh.tool_calls c join agentmesh.transcript s on s.agent_id = c.agent_id and s.seq = c.seq
  where c.agent_id = any (%(agents)s) and c.name not in ('wait', 'task', 'ask_user') and c.status in ('started', 'done')
  union all
  select m.sent_at, m.sent_at from agentmesh.mail m where m.recipient = any (%(agents)s)
  union all
  select a.created_at, a.created_at from agentmesh.agents a where a.id = any (%(agents)s)
  union all
  select a.died_at, a.died_at from agentmesh.agents a where a.id = any (%(agents)s) and a.died_at is not null)
select lower(island) as began, upper(island) - interval '30 s' as ended
from (select unnest(range_agg(tstzrange(least(began, ended), ended + interval '30 s', '[]'))) as island from doing) islands order by 1;

-- name: spans
-- The activities of an agent, sorted by beginning; ended is null while it goes on. Verbs and calls that only read have no start
-- of their own (their end writes both): they start with their step, or when the call before them has its result.
with calls as (
  select c.name, c.status, c.started_at, c.ended_at,
    greatest(s.created_at, max(c.ended_at) over (partition by c.seq order by c.ordinal rows between unbounded preceding and 1 preceding)) as free_at
  from agentmesh.tool_calls c join agentmesh.transcript s on s.agent_id = c.agent_id and s.seq = c.seq
  where c.agent_id = %(agent)s)
select kind, name, began, ended, failed from (
  select 'model' as kind, c.model as name, c.ended_at - coalesce(c.latency_ms, 0) * interval '1 ms' as began, c.ended_at as ended, c.error is not null as failed
  from agentmesh.model_calls c where c.agent_id = %(agent)s
  union all
  select 'model', a.model, s.at, null, false from agentmesh.agents a cross join agentmesh.calling_since(a.id) as s (at) where a.id = %(agent)s
  union all
  select case when c.name in ('wait', 'task') then 'wait' else 'tool' end, c.name,
    case when c.started_at < c.ended_at - interval '1 ms' or c.status in ('started', 'delegated') then c.started_at else least(c.free_at, c.ended_at) end,
    c.ended_at, false
  from calls c where c.status <> 'asking' and c.name <> 'ask_user'
  union all
  select 'ask', r.tool, r.asked_at, coalesce(r.answered_at, r.cancelled_at), false from agentmesh.requests r where r.agent_id = %(agent)s
  union all
  select 'wait', 'wait', w.started_at, null, false from agentmesh.wait w where w.waiter = %(agent)s and w.seq is null) spans
order by began, ended;

-- name: letters
-- The newest mail to these agents, and how much there is in total; sender null: the user.
select m.id, m.sender, m.recipient, m.sent_at, m.automatic, m.read_seq, count(*) over () as count
from agentmesh.mail m where m.recipient = any (%(agents)s) and m.withdrawn_at is null order by m.sent_at desc, m.id desc limit %(limit)s;
