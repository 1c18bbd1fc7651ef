-- The rows of a session that an export reads, in one snapshot; those of an agent in the order of its rows.

-- name: session
-- A session, and the time of the snapshot.
select s.id, s.title, s.workdir, s.host, s.os_user, s.root_id, s.permission_mode, s.rules, s.attended, s.max_depth, s.max_children, s.max_agents,
  s.max_unread, s.max_tokens, s.max_cost_usd, s.created_at, s.ended_at, transaction_timestamp() as exported_at
from agentmesh.sessions s where s.id = %(session)s;

-- name: agents
-- The agents of a session, including dead and reaped ones, parents before their children.
select a.id, a.name, a.parent_id, agentmesh.path(a.id) as path, a.depth, a.status, a.subagent_type, a.model, a.settings_id, a.permissions, a.forked_at,
  a.clean, a.external, a.turn, a.tool_calls, a.model_calls, a.input_tokens - a.cached_tokens + a.output_tokens as tokens, a.input_tokens,
  a.output_tokens, a.cached_tokens, case when a.unpriced_calls = 0 or a.cost_usd > 0 then a.cost_usd end as cost_usd, a.unpriced_calls,
  a.max_tokens, a.max_cost_usd, a.created_at, a.died_at, a.killed_by, a.reaped_at
from agentmesh.agents a where a.session_id = %(session)s order by a.created_at, a.id;

-- name: settings
-- System prompts and tools of a session's agents; forks share their parent's.
select s.id, s.system_prompt, s.tools from agentmesh.settings s
where s.id in (select a.settings_id from agentmesh.agents a where a.session_id = %(session)s) order by s.id;

-- name: transcript
-- All own rows of an agent.
select t.agent_id, t.seq, t.kind, t.created_at, t.content from agentmesh.transcript t where t.agent_id = %(agent)s order by t.seq;

-- name: tool_calls
-- The tool calls of an agent; result_seq is the row of its transcript that holds the result.
select c.agent_id, c.seq, c.ordinal, c.call_id, c.name, c.status, c.started_at, c.ended_at, c.result_seq, c.arguments
from agentmesh.tool_calls c where c.agent_id = %(agent)s order by c.seq, c.ordinal;

-- name: tasks
-- The tasks that an agent has given to sub-agents.
select t.parent, t.seq, t.ordinal, t.child, t.status, t.max_steps, t.started_at, t.ended_at, t.description
from agentmesh.tasks t where t.parent = %(agent)s order by t.seq, t.ordinal;

-- name: model_calls
-- The model calls of an agent.
select c.id, c.agent_id, c.turn, c.model, c.input_tokens, c.output_tokens, c.cached_tokens, c.estimated, c.cost_usd, c.latency_ms, c.first_token_ms,
  c.finish_reason, c.ended_at, c.error
from agentmesh.model_calls c where c.agent_id = %(agent)s order by c.id;

-- name: mail
-- The mail that an agent was sent; sender null: the user.
select m.id, m.sender, m.recipient, m.automatic, m.failed, m.sent_at, m.read_at, m.read_seq, m.withdrawn_at, m.body, m.images
from agentmesh.mail m where m.recipient = %(agent)s order by m.id;

-- name: unread
-- The unread mail of an agent, with its sender's name.
select m.id, m.sent_at, coalesce(s.name, 'user') as sender_name, m.automatic, m.body, m.images
from agentmesh.mail m left join agentmesh.agents s on s.id = m.sender
where m.recipient = %(agent)s and m.read_at is null and m.withdrawn_at is null order by m.id;

-- name: requests
-- The requests to a person, answered or not.
select r.id, r.agent_id, r.seq, r.ordinal, r.kind, r.tool, r.asked_at, r.answered_at, r.answered_by, r.cancelled_at, r.arguments, r.reason, r.rules,
  r.question, r.options, r.answer
from agentmesh.requests r where r.session_id = %(session)s order by r.asked_at, r.id;

-- name: costs
-- The usage and cost of model calls, by agent and model; cost_usd counts only calls with a known price.
select a.id as agent_id, a.name, c.model, count(*) as calls, sum(c.input_tokens - c.cached_tokens + c.output_tokens)::bigint as tokens,
  sum(c.input_tokens)::bigint as input_tokens, sum(c.output_tokens)::bigint as output_tokens, sum(c.cached_tokens)::bigint as cached_tokens,
  sum(c.cost_usd) as cost_usd, count(*) filter (where c.cost_usd is null) as unpriced_calls
from agentmesh.agents a join agentmesh.model_calls c on c.agent_id = a.id
where a.session_id = %(session)s group by a.id, a.name, c.model order by a.created_at, a.id, c.model;

-- name: images
-- The images of a session, without their bytes.
select i.digest, i.media_type, i.width, i.height, octet_length(i.bytes) as size, i.created_at from agentmesh.images i
where i.session_id = %(session)s order by i.created_at, i.digest;
