-- name: fork
-- Make a child of the parent.
select agentmesh.fork(%(parent)s, %(name)s, %(prompt)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: kill
-- End the target and its descendants; who died, target first.
select agent_id as id, name from agentmesh.kill(%(target)s, %(killed_by)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: interrupt
-- Stop an agent's turn; whether there was one.
select agentmesh.interrupt(%(agent)s);

-- name: by_id
-- An agent as its owner needs it.
select id, session_id, parent_id, name, depth, status, model, settings_id, permissions, forked_at, turn, worker_id, epoch
from agentmesh.agents where id = %(agent)s;

-- name: matches
-- What each of several texts may mean in a session: an agent's full id (0), its exact name (1), a prefix of its id (2).
select u.n, a.id, a.name, a.how
from unnest(%(asked)s::text[]) with ordinality as u (who, n)
cross join lateral (
  select id, name, 0 as how from agentmesh.agents
  where id = case when u.who ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then u.who::uuid end and session_id = %(session)s
  union all
  select id, name, 1 from agentmesh.agents where session_id = %(session)s and name = u.who
  union all
  (select id, name, 2 from agentmesh.agents
   where session_id = %(session)s and u.who ~ '^[0-9a-f-]{4,35}$' and starts_with(id::text, u.who) order by created_at limit 20)) a
order by u.n, a.how;

-- name: anywhere
-- Agents of any session by full id or prefix of the id.
select id, session_id, name from agentmesh.agents
where id between %(first)s and %(last)s order by created_at desc limit 20;

-- name: labels
-- Names and ids of a session's agents, for suggestions.
select id, name from agentmesh.agents where session_id = %(session)s order by reaped_at nulls first, created_at desc limit 500;

-- name: view
-- The agents of a session as people see them; the dead and reaped too.
select id, session_id, parent_id, name, path, depth, status, activity, unread, model, worker_id, external, tool_calls, tokens, cost_usd,
  tree_tokens, tree_cost_usd, created_at, died_at, reaped_at, subagent_type, clean
from agentmesh.v_agents where session_id = %(session)s order by created_at, id;

-- name: living
-- The living agents of a session as the tool lists them.
select a.id, a.name, p.name as parent, a.status, a.activity, a.unread
from agentmesh.v_agents a left join agentmesh.agents p on p.id = a.parent_id
where a.session_id = %(session)s and a.status <> 'dead' and not (a.clean and a.status = 'idle') order by a.created_at, a.id;

-- name: settings
-- System prompt and tools.
select system_prompt, tools from agentmesh.settings where id = %(settings)s;

-- name: busy
-- How many agents of a session still work; external agents aside.
select count(*) from agentmesh.agents where session_id = %(session)s and status = 'running' and not external;

-- name: output
-- The row that an agent ended its last turn with.
select t.kind, t.content from agentmesh.agents a join agentmesh.transcript t on t.agent_id = a.id and t.seq = a.ended_seq where a.id = %(agent)s;
