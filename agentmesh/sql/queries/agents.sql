-- name: fork
-- Make a child of the parent.
select agentmesh.fork(%(parent)s, %(name)s, %(prompt)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller,
  workspace => %(workspace)s, base => %(base)s, model => %(model)s, tools => %(tools)s, context => %(context)s,
  schema => %(schema)s, "check" => %(check)s, check_approved => %(check_approved)s,
  type => %(type)s, report => %(report)s, effort => %(effort)s);

-- name: fork_cache
-- The cost of a fork's differences, in cached prefix; null if it has none.
select agentmesh.fork_cache(%(child)s);

-- name: kill
-- End the target and its descendants; return the agents that died, target first.
select agent_id as id, name from agentmesh.kill(%(target)s, %(killed_by)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: rename
-- Give an agent another name; the name it has now.
select agentmesh.rename(%(agent)s, %(name)s);

-- name: renamed
-- The agent of a session that last gave up this name.
select a.id, a.name from agentmesh.agents a cross join lateral (
  select t.created_at from agentmesh.transcript t where t.agent_id = a.id and t.kind = 'event'
    and t.content ->> 'event' = 'renamed' and t.content ->> 'from' = %(name)s order by t.seq desc limit 1) gave_up
where a.session_id = %(session)s order by gave_up.created_at desc limit 1;

-- name: interrupt
-- Stop an agent's turn; return whether there was one.
select agentmesh.interrupt(%(agent)s, %(interrupted_by)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: background
-- Let the task of a sub-agent go on in the background.
select agentmesh.background(%(agent)s);

-- name: by_id
-- An agent as its owner needs it.
select id, session_id, parent_id, name, depth, status, model, settings_id, permissions, forked_at, turn, worker_id, epoch, effort
from agentmesh.agents where id = %(agent)s;

-- name: matches
-- The agents that each of several texts may mean in a session. It is the asker's parent or an agent's full id (0), its exact name
-- or whole path (1), or a prefix of its id (2). Such ids are between first and last. They must use their own index,
-- whatever PostgreSQL guesses. With the session's index, each text would read all agents of the session.
select u.n, a.id, a.name, a.how
from unnest(%(asked)s::text[], %(first)s::uuid[], %(last)s::uuid[]) with ordinality as u (who, first, last, n)
cross join lateral (
  select p.id, p.name, 0 as how from agentmesh.agents me join agentmesh.agents p on p.id = me.parent_id where u.who = 'parent' and me.id = %(asker)s
  union all
  select id, name, 1 from agentmesh.agents
  where session_id = %(session)s and name = split_part(u.who, '/', -1) and (strpos(u.who, '/') = 0 or agentmesh.path(id) = u.who)
  union all
  (select id, name, case when u.first = u.last then 0 else 2 end
   from (select * from agentmesh.agents where id between u.first and u.last offset 0) near
   where session_id = %(session)s order by created_at limit 20)) a
order by u.n, a.how;

-- name: named
-- The agents of a session with these names, and their places in the tree.
select id, name, parent_id, agentmesh.path(id) as path from agentmesh.agents where session_id = %(session)s and name = any(%(names)s::text[]);

-- name: anywhere
-- Agents of any session by full id or prefix of the id.
select id, session_id, name from agentmesh.agents
where id between %(first)s and %(last)s order by created_at desc limit 20;

-- name: labels
-- Names and ids of a session's agents, for suggestions, the living first; each with the number of all that live.
select id, name, status = 'dead' as dead, count(*) filter (where status <> 'dead') over () as living
from agentmesh.agents where session_id = %(session)s order by dead, reaped_at nulls first, created_at desc limit 500;

-- name: view
-- The agents of a session as people see them, oldest first, including dead and reaped ones; a limit of null means all.
-- It reads the whole session once, for the sums; v_agents would do so for each agent, which takes a hundred times as
-- long.
with recursive walk (id, path, above, tokens, cost_usd, unpriced_calls) as (
  select a.id, a.name, array[a.id], a.input_tokens - a.cached_tokens + a.output_tokens, a.cost_usd, a.unpriced_calls
  from agentmesh.sessions s join agentmesh.agents a on a.id = s.root_id where s.id = %(session)s
  union all
  select c.id, w.path || '/' || c.name, w.above || c.id, c.input_tokens - c.cached_tokens + c.output_tokens, c.cost_usd, c.unpriced_calls
  from walk w cross join lateral (
    select a.id, a.name, a.input_tokens, a.cached_tokens, a.output_tokens, a.cost_usd, a.unpriced_calls
    from agentmesh.agents a where a.parent_id = w.id offset 0) c),
totals (id, tokens, cost_usd, unpriced_calls) as (
  select u.id, sum(w.tokens)::bigint, sum(w.cost_usd), sum(w.unpriced_calls) from walk w cross join unnest(w.above) as u (id) group by u.id)
select v.id, v.session_id, v.parent_id, v.name, w.path, v.depth, v.status, v.activity, v.unread, v.model, v.worker_id, v.external, v.tool_calls, v.tokens,
  v.cost_usd, t.tokens as tree_tokens, case when t.unpriced_calls = 0 or t.cost_usd > 0 then t.cost_usd end as tree_cost_usd,
  v.created_at, v.died_at, v.reaped_at, v.subagent_type, v.clean, v.silent, v.unseen, v.workspace, v.lines_added, v.lines_removed, v.merged
from walk w join totals t on t.id = w.id
cross join lateral (
  select x.id, x.session_id, x.parent_id, x.name, x.depth, x.status, x.activity, x.unread, x.model, x.worker_id, x.external, x.tool_calls, x.tokens,
    x.cost_usd, x.created_at, x.died_at, x.reaped_at, x.subagent_type, x.clean, x.silent, x.unseen, x.workspace, x.lines_added, x.lines_removed, x.merged
  from agentmesh.v_agents x where x.id = w.id offset 0) v
order by v.created_at, v.id limit %(limit)s;

-- name: page
-- The oldest living agents of a session as people see them, and its newest dead ones that are not reaped, each up to a
-- limit. Their ancestors are included, but no sums over trees: it reads no more than that.
with recursive chosen (id) as (
  (select a.id from agentmesh.agents a where a.session_id = %(session)s and a.status <> 'dead' order by a.created_at, a.id limit %(limit)s)
  union all
  (select a.id from agentmesh.agents a where a.session_id = %(session)s and a.status = 'dead' and a.reaped_at is null order by a.died_at desc limit %(dead)s)),
shown (id) as (
  select c.id from chosen c
  union
  select p.id from shown cross join lateral (
    select a.parent_id as id from agentmesh.agents a where a.id = shown.id and a.parent_id is not null offset 0) p)
select v.id, v.session_id, v.parent_id, v.name, v.path, v.depth, v.status, v.activity, v.unread, v.model, v.worker_id, v.external, v.tool_calls,
  v.tokens, v.cost_usd, v.created_at, v.died_at, v.reaped_at, v.subagent_type, v.clean, v.silent, v.unseen, v.workspace, v.lines_added, v.lines_removed, v.merged
from agentmesh.v_agents v where v.id = any (array(select id from shown)) order by v.created_at, v.id;

-- name: living
-- The living agents of a session as the tool lists them, oldest first. Up to the limit: the caller, its parent and its
-- children, then others. Their rows are chosen first, and the view is asked once for all of them: asked for each, it
-- would walk a small table each time.
with near (id, place, created_at) as (
  select id, 0, created_at from agentmesh.agents
  where id in (%(agent)s, (select parent_id from agentmesh.agents where id = %(agent)s)) and status <> 'dead' and not (clean and status = 'idle')
  union all
  (select id, 1, created_at from agentmesh.agents
   where parent_id = %(agent)s and status <> 'dead' and not (clean and status = 'idle') order by created_at, id limit %(limit)s)
  union all
  (select id, 2, created_at from agentmesh.agents
   where session_id = %(session)s and status <> 'dead' and not (clean and status = 'idle') order by created_at, id limit %(limit)s)),
chosen (id) as (
  select id from near group by id, created_at order by min(place), created_at, id limit %(limit)s)
select v.id, v.name, p.name as parent, v.status, v.activity, v.unread
from agentmesh.v_agents v left join agentmesh.agents p on p.id = v.parent_id
where v.id = any (array(select id from chosen)) order by v.created_at, v.id;

-- name: settings
-- System prompt and tools.
select system_prompt, tools from agentmesh.settings where id = %(settings)s;

-- name: busy
-- How many agents of a session still work, without external ones.
select count(*) from agentmesh.agents where session_id = %(session)s and status = 'running' and not external;

-- name: working
-- How many of the listed agents exist, and which of them and of these sessions' agents run, without the sessions'
-- external ones. The caller listens until all of them rest; for that it needs no more than a thousand.
select (select count(*) from agentmesh.agents a where a.id = any(%(listed)s::uuid[])),
  array(select a.id from agentmesh.agents a where a.id = any(%(listed)s::uuid[]) and a.status = 'running' limit 1000)
  || array(select a.id from agentmesh.agents a where a.session_id = any(%(sessions)s::uuid[]) and a.status = 'running' and not a.external limit 1000);

-- name: endings
-- The same agents without reaped ones, oldest first; for idle ones, the row that their last turn ended with. One
-- snapshot.
with chosen as (
  select a.* from agentmesh.agents a where a.id = any(%(listed)s::uuid[])
  union all
  select a.* from agentmesh.agents a where a.session_id = any(%(sessions)s::uuid[]) and a.reaped_at is null and not a.external)
select c.id, c.name, c.status, t.kind, t.content
from chosen c left join lateral (
  select t.kind, t.content from agentmesh.transcript t where c.status = 'idle' and t.agent_id = c.id and t.seq = c.ended_seq offset 0) t on true
order by c.created_at, c.id;

-- name: output
-- The row that an agent ended its last turn with.
select t.kind, t.content from agentmesh.agents a join agentmesh.transcript t on t.agent_id = a.id and t.seq = a.ended_seq where a.id = %(agent)s;
