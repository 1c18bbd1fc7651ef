-- name: agents
-- The agents of a session as a screen shows them, oldest first, with their ancestors (even reaped ones). A large
-- session shows only those that a person may look for: the oldest living and the newest dead agents, and the root. It
-- also shows those that run, have failed, are done and unseen, ask or are wanted. It adds the newest children and the
-- siblings of the root and of those that ask or are wanted, and the agents that they wait for. Every part uses an index and has a
-- limit, so that it costs the same in a session of 100,000 ("offset 0": otherwise the planner would hash all agents).
-- The view is asked once for all of them.
with recursive looked (id) as (
  select s.root_id from agentmesh.sessions s where s.id = %(session)s
  union
  select w.id from unnest(%(wanted)s::uuid[]) as w (id)
  union
  select r.agent_id from agentmesh.requests r where r.session_id = %(session)s and r.answered_at is null and r.cancelled_at is null),
chosen (id) as (
  select l.id from looked l
  union
  (select a.id from agentmesh.agents a where a.session_id = %(session)s and a.status <> 'dead' order by a.created_at, a.id limit %(some)s)
  union
  (select a.id from agentmesh.agents a where a.session_id = %(session)s and a.status = 'dead' and a.reaped_at is null order by a.died_at desc limit %(some)s)
  union
  (select a.id from agentmesh.agents a where a.session_id = %(session)s and a.status = 'running' order by a.queued_at desc limit %(near)s)
  union
  select n.id from unnest('{failed,out of budget,interrupted,done}'::text[]) as ending (how) cross join lateral (
    select a.id from agentmesh.agents a
    where a.session_id = %(session)s and a.ended_as = ending.how and a.status = 'idle' and (a.unseen or a.ended_as <> 'done')
    order by a.created_at desc, a.id desc limit %(near)s) n
  union
  select c.id from looked l cross join lateral (
    select a.id from agentmesh.agents a where a.parent_id = l.id and a.reaped_at is null order by a.created_at desc, a.id desc limit %(near)s) c
  union
  select s.id from looked l join agentmesh.agents me on me.id = l.id cross join lateral (
    (select a.id from agentmesh.agents a where a.parent_id = me.parent_id and a.reaped_at is null and (a.created_at, a.id) > (me.created_at, me.id)
     order by a.created_at, a.id limit %(near)s)
    union all
    (select a.id from agentmesh.agents a where a.parent_id = me.parent_id and a.reaped_at is null and (a.created_at, a.id) < (me.created_at, me.id)
     order by a.created_at desc, a.id desc limit %(near)s)) s
  union
  select t.id from looked l cross join lateral (select w.target as id from agentmesh.waits w where w.waiter = l.id limit %(near)s) t),
shown (id) as (
  select c.id from chosen c
  union
  select p.id from shown cross join lateral (
    select a.parent_id as id from agentmesh.agents a where a.id = shown.id and a.parent_id is not null offset 0) p)
select v.id, v.session_id, v.parent_id, v.name, v.depth, v.status, v.activity, v.unread, v.model, v.worker_id, v.external, v.tool_calls,
  v.tokens, v.cost_usd, v.created_at, v.died_at, v.reaped_at, v.subagent_type, v.clean, v.silent, v.unseen, v.workspace, v.lines_added, v.lines_removed, v.merged,
  case when v.status = 'running' then extract(epoch from clock_timestamp() - a.queued_at)::double precision end as running_for,
  (select e.kind from agentmesh.transcript e where e.agent_id = a.id and e.seq = a.ended_seq) as ended_with,
  agentmesh.open_capture(v.id) is not null as capturing
from agentmesh.v_agents v join agentmesh.agents a on a.id = v.id
where v.id = any (array(select id from shown)) and v.session_id = %(session)s order by v.created_at, v.id;

-- name: working
-- How many agents of a session run, without external ones; it counts no further than a limit.
select count(*) from (
  select from agentmesh.agents where session_id = %(session)s and status = 'running' and not external limit %(most)s) r;

-- name: used
-- The total usage of a session; the cost is null if no call of those agents had a known price.
select coalesce(u.tokens, 0) + b.tokens as tokens,
  case when coalesce(u.cost_usd, 0) + b.cost_usd > 0
    or not exists (select from agentmesh.agents a where a.id = any (%(agents)s) and a.unpriced_calls > 0) then coalesce(u.cost_usd, 0) + b.cost_usd end as cost_usd
from (select coalesce(sum(tokens), 0)::bigint as tokens, coalesce(sum(cost_usd), 0) as cost_usd from agentmesh.bookings where session_id = %(session)s) b
left join agentmesh.session_usage u on u.session_id = %(session)s;

-- name: waits
-- The waits of these agents: the targets in the order asked, and those that have sent a message already.
select h.waiter,
  case when h.targets is not null then array(
    select (t.item ->> 'id')::uuid from jsonb_array_elements(h.targets) with ordinality as t (item, n) where t.item ->> 'id' is not null order by t.n) end as targets,
  array(select v.target from agentmesh.v_waits v where v.waiter = h.waiter and v.received) as received,
  extract(epoch from h.deadline - clock_timestamp())::double precision as left
from agentmesh.wait h where h.waiter = any (%(agents)s);

-- name: pending
-- The user's messages that these agents have not read, oldest first.
select m.id, m.recipient, left(m.body, %(width)s) as body
from agentmesh.mail m where m.recipient = any (%(agents)s) and m.sender is null and not m.automatic and m.read_at is null and m.withdrawn_at is null order by m.id;

-- name: details
-- A board's words about some agents beside their state: for how long (seconds), what they wrote last, and the tokens of their last model call.
-- conflicts: how many files of its own tree do not fit with another agent's.
select a.id, a.model, a.model_calls,
  extract(epoch from clock_timestamp() - coalesce(
    (select min(r.asked_at) from agentmesh.requests r
     where r.session_id = a.session_id and r.agent_id = a.id and r.answered_at is null and r.cancelled_at is null),
    case a.status when 'running' then coalesce(w.started_at, a.queued_at) when 'dead' then a.died_at else e.created_at end,
    a.created_at))::double precision as since,
  coalesce((
    select right(coalesce(nullif(t.content ->> 'text', ''), t.content ->> 'error', ''), %(width)s)
    from (select x.seq, x.kind, x.content from agentmesh.transcript x where x.agent_id = a.id order by x.seq desc limit %(looked)s) t
    where t.kind in ('assistant', 'error') and coalesce(t.content ->> 'text', t.content ->> 'error', '') <> ''
    order by t.seq desc limit 1), '') as said,
  (select c.input_tokens + c.output_tokens from agentmesh.model_calls c where c.agent_id = a.id and c.error is null order by c.id desc limit 1) as context_tokens,
  (select count(distinct c.path) from agentmesh.conflicts c where c.over_at is null and (c.a = a.workspace_id or c.b = a.workspace_id)) as conflicts
from agentmesh.agents a
left join agentmesh.wait w on w.waiter = a.id
left join agentmesh.transcript e on e.agent_id = a.id and e.seq = a.ended_seq
where a.id = any (%(agents)s);

-- name: ran
-- When these agents worked within the last seconds, as seconds ago; the newest calls only. Waiting, for others or for a person, is no work.
select u.id, extract(epoch from present.at - d.began)::double precision as began, extract(epoch from present.at - d.ended)::double precision as ended
from (select clock_timestamp() as at) present cross join unnest(%(agents)s::uuid[]) as u (id) cross join lateral (
  (select c.ended_at - coalesce(c.latency_ms, 0) * interval '1 ms' as began, c.ended_at as ended
   from agentmesh.model_calls c where c.agent_id = u.id order by c.id desc limit %(most)s)
  union all
  select s.at, present.at from agentmesh.calling_since(u.id) as s (at)
  union all
  (select coalesce(c.started_at, s.created_at), coalesce(c.ended_at, present.at)
   from agentmesh.tool_calls c join agentmesh.transcript s on s.agent_id = c.agent_id and s.seq = c.seq
   where c.agent_id = u.id and c.name not in ('wait', 'task', 'ask_user') and c.status in ('started', 'done')
   order by c.seq desc, c.ordinal desc limit %(most)s)) d
where d.ended > present.at - %(seconds)s * interval '1 s';

-- name: everywhere
-- The agents of all open sessions that a person may look for, a few of each session, newest first. In every session
-- these are the ones that ask, run or have failed; an index of each kind gives the next session that has one, however
-- many have none. most: how many sessions of each kind, besides the newest. In the newest sessions they are also those that were
-- interrupted or are done and unseen, and the root.
with recursive open as (
  select s.id, s.root_id from agentmesh.sessions s where s.ended_at is null order by s.created_at desc limit %(sessions)s),
asking (id) as (
  (select r.session_id from agentmesh.requests r where r.answered_at is null and r.cancelled_at is null order by r.session_id limit 1)
  union all
  select n.session_id from asking cross join lateral (
    select r.session_id from agentmesh.requests r
    where r.session_id > asking.id and r.answered_at is null and r.cancelled_at is null order by r.session_id limit 1) n),
working (id) as (
  (select a.session_id from agentmesh.agents a where a.status = 'running' order by a.session_id limit 1)
  union all
  select n.session_id from working cross join lateral (
    select a.session_id from agentmesh.agents a where a.session_id > working.id and a.status = 'running' order by a.session_id limit 1) n),
failing (id) as (
  (select a.session_id from agentmesh.agents a where a.status = 'idle' and a.ended_as in ('failed', 'out of budget') order by a.session_id limit 1)
  union all
  select n.session_id from failing cross join lateral (
    select a.session_id from agentmesh.agents a
    where a.session_id > failing.id and a.status = 'idle' and a.ended_as in ('failed', 'out of budget') order by a.session_id limit 1) n),
chosen (id) as (
  select root_id from open
  union
  select r.agent_id from ((select id from asking limit %(most)s) union select id from open) o cross join lateral (
    select r.agent_id from agentmesh.requests r
    where r.session_id = o.id and r.answered_at is null and r.cancelled_at is null order by r.asked_at limit %(few)s) r
  union
  select n.id from ((select id from failing limit %(most)s) union select id from open) o cross join lateral (
    select a.id from agentmesh.agents a
    where a.session_id = o.id and a.status = 'idle' and a.ended_as in ('failed', 'out of budget')
    order by a.created_at desc limit %(few)s) n
  union
  select n.id from open o cross join unnest('{interrupted,done}'::text[]) as ending (how) cross join lateral (
    select a.id from agentmesh.agents a
    where a.session_id = o.id and a.ended_as = ending.how and a.status = 'idle' and (a.unseen or a.ended_as <> 'done')
    order by a.created_at desc, a.id desc limit %(few)s) n
  union
  select n.id from ((select id from working limit %(most)s) union select id from open) o cross join lateral (
    select a.id from agentmesh.agents a where a.session_id = o.id and a.status = 'running' order by a.queued_at desc limit %(few)s) n)
select v.id, v.session_id, v.parent_id, v.name, v.depth, v.status, v.activity, v.unread, v.model, v.worker_id, v.external, v.tool_calls,
  v.tokens, v.cost_usd, v.created_at, v.died_at, v.reaped_at, v.subagent_type, v.clean, v.silent, v.unseen, v.workspace, v.lines_added, v.lines_removed, v.merged,
  (select case when s.title <> '' then s.title else left(s.id::text, 8) end from agentmesh.sessions s where s.id = v.session_id) as session,
  exists (select from agentmesh.requests r
          where r.session_id = v.session_id and r.agent_id = v.id and r.answered_at is null and r.cancelled_at is null) as asks
from agentmesh.v_agents v where v.id = any (array(select id from chosen)) order by v.created_at desc, v.id;

-- name: before
-- Rows of an agent before a seq, of all kinds, newest first.
select agent_id, seq, kind, content, seconds from agentmesh.timed_rows where agent_id = %(agent)s and seq < %(before)s order by seq desc limit %(limit)s;

-- name: appended
-- Rows of an agent after a seq, of all kinds.
select agent_id, seq, kind, content, seconds from agentmesh.timed_rows where agent_id = %(agent)s and seq > %(after)s order by seq limit %(limit)s;

-- name: inherited
-- The newest rows that an agent inherited, newest first.
select l.agent_id, t.seq, t.kind, t.content
from (select agent_id, after, upto, generation from agentmesh.lineage(%(agent)s) where generation > 0) l
cross join lateral (
  select x.seq, x.kind, x.content from agentmesh.transcript x where x.agent_id = l.agent_id and x.seq > l.after and x.seq <= l.upto order by x.seq desc limit %(limit)s) t
order by l.generation, t.seq desc limit %(limit)s;

-- name: inherited_count
-- How many rows an agent inherited; seq has no gaps.
select coalesce(sum(greatest(upto - after, 0)), 0)::bigint from agentmesh.lineage(%(agent)s) where generation > 0;

-- name: left
-- How many agents of a session run, and how much it may still spend; null: no cap. untouched: nothing has ever happened in
-- it.
select (select count(*) from agentmesh.agents a where a.session_id = s.id and a.status = 'running' and not a.external) as running,
  (s.max_tokens - u.tokens)::bigint as tokens, s.max_cost_usd - u.cost_usd as cost_usd,
  r.turn = 0 and not exists (select from agentmesh.agents a where a.parent_id = r.id) and not exists (select from agentmesh.transcript t where t.agent_id = r.id) as untouched
from agentmesh.sessions s join agentmesh.agents r on r.id = s.root_id
cross join lateral (
  select coalesce(sum(x.tokens), 0) as tokens, coalesce(sum(x.cost_usd), 0) as cost_usd
  from (select b.tokens, b.cost_usd from agentmesh.bookings b where b.session_id = s.id
        union all select v.tokens, v.cost_usd from agentmesh.session_usage v where v.session_id = s.id) x) u
where s.id = %(session)s;
