-- The rows of a session that an export reads, in one snapshot; those of an agent in the order of its rows.

-- name: session
-- A session, and the time of the snapshot.
select s.id, s.title, s.workdir, s.host, s.os_user, s.root_id, s.permission_mode, s.rules, s.attended, s.max_depth, s.max_children, s.max_agents, s.max_living, s.ask_agents,
  s.max_unread, s.max_spawns, s.max_turns, s.max_turn_seconds, s.deadline, s.max_tokens, s.max_cost_usd, s.created_at, s.ended_at, transaction_timestamp() as exported_at
from agentmesh.sessions s where s.id = %(session)s;

-- name: agents
-- The agents of a session, including dead and reaped ones, parents before their children.
select a.id, a.name, a.parent_id, agentmesh.path(a.id) as path, a.depth, a.status, a.subagent_type, a.model, a.settings_id, a.permissions, a.forked_at,
  a.clean, a.silent, a.external, a.turn, a.tool_calls, a.model_calls, a.input_tokens - a.cached_tokens + a.output_tokens as tokens, a.input_tokens,
  a.output_tokens, a.cached_tokens, case when a.unpriced_calls = 0 or a.cost_usd > 0 then a.cost_usd end as cost_usd, a.unpriced_calls,
  a.max_tokens, a.max_cost_usd, a.created_at, a.died_at, a.killed_by, a.reaped_at, a.workspace_id, a.effort
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
select t.parent, t.seq, t.ordinal, t.child, t.status, t.max_steps, t.started_at, t.ended_at, t.description, t.background, t.schema, t.result, t.attempts,
  t.check_command, t.check_exit, t.place
from agentmesh.tasks t where t.parent = %(agent)s order by t.seq, t.ordinal, t.place;

-- name: model_calls
-- The model calls of an agent.
select c.id, c.agent_id, c.turn, c.model, c.input_tokens, c.output_tokens, c.cached_tokens, c.estimated, c.cost_usd, c.latency_ms, c.first_token_ms,
  c.finish_reason, c.ended_at, c.error
from agentmesh.model_calls c where c.agent_id = %(agent)s order by c.id;

-- name: mail
-- The mail that an agent was sent; sender null: the user.
select m.id, m.sender, m.recipient, m.automatic, m.failed, m.urgent, m.about, m.sent_at, m.read_at, m.read_seq, m.withdrawn_at, m.body, m.images,
  m.reply_to
from agentmesh.mail m where m.recipient = %(agent)s order by m.id;

-- name: unread
-- The unread mail of an agent, with its sender's name.
select m.id, m.sent_at, coalesce(s.name, 'user') as sender_name, m.automatic, m.body, m.images
from agentmesh.mail m left join agentmesh.agents s on s.id = m.sender
where m.recipient = %(agent)s and m.read_at is null and m.withdrawn_at is null order by m.id;

-- name: requests
-- The requests to a person, answered or not.
select r.id, r.agent_id, r.seq, r.ordinal, r.kind, r.tool, r.asked_at, r.answered_at, r.answered_by, r.cancelled_at, r.arguments, r.reason, r.rules,
  r.question, r.options, r.agents, r.covers, r.answer
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

-- name: workspaces
-- Where the agents of a session work. base, head and at_tree are trees of Git's.
select w.id, w.kind, w.origin, w.state, w.path, w.host, w.os_user, w.repository, w.problem, w.at_tree, w.base, w.head, w.created_at, w.ready_at, w.removed_at
from agentmesh.workspaces w where w.session_id = %(session)s order by w.created_at, w.id;

-- name: snapshots
-- The snapshots of a session's workspaces, without the files: tree is their tree of Git's.
select s.id, s.workspace_id, s.agent_id, s.seq, s.ordinal, s.kind, s.tree, s.before, s.ref, s.files, s.added, s.removed, s.left_out, s.merge_id, s.made_at,
  s.freed_at
from agentmesh.snapshots s where s.workspace_id in (select w.id from agentmesh.workspaces w where w.session_id = %(session)s) order by s.id;

-- name: merges
-- The merges between a session's workspaces.
select m.id, m.source, m.target, m.source_agent, m.target_agent, m.by_agent, m.seq, m.ordinal, m.is_up, m.state, m.reason, m.base, m.ours, m.theirs,
  m.result, m.check_command, m.check_exit, m.files, m.conflicts, m.started_at, m.ended_at, m.undone_at, m.undone_by
from agentmesh.merges m where m.session_id = %(session)s order by m.id;

-- name: forms
-- The forms of reports that forks owe their parents, and their results.
select f.agent_id, f.schema, f.check_command, f.check_approved, f.check_exit, f.attempts, f.status, f.result, f.ended_at
from agentmesh.forms f join agentmesh.agents a on a.id = f.agent_id where a.session_id = %(session)s order by a.created_at, a.id;

-- name: batches
-- The calls of task with several items.
select b.parent, b.seq, b.ordinal, b.spec, b.side, b.items, b.started, b.running, b.done, b.failed, b.started_at, b.ended_at
from agentmesh.batches b where b.session_id = %(session)s order by b.started_at, b.parent, b.seq, b.ordinal;

-- name: batch_items
-- The items of these calls, with their sub-agents and results.
select i.parent, i.seq, i.ordinal, i.place, i.item, i.state, i.child, i.result
from agentmesh.batch_items i join agentmesh.batches b using (parent, seq, ordinal)
where b.session_id = %(session)s order by b.started_at, i.parent, i.seq, i.ordinal, i.place;

-- name: todos
-- The board of todos.
select t.id, t.content, t.after, t.created_by, t.created_at, t.status, t.owner, t.claimed_at, t.done_at, t.note
from agentmesh.todos t where t.session_id = %(session)s order by t.id;

-- name: processes
-- Commands in the background, with the end of their output.
select p.id, p.agent_id, p.seq, p.ordinal, p.command, p.watch, p.state, p.exit_code, p.output, p.output_bytes, p.matches, p.match_mail_id,
  p.started_at, p.stop_at, p.ended_at
from agentmesh.processes p where p.session_id = %(session)s order by p.id;

-- name: timers
-- Messages that are or were due later; sender null: the user.
select t.id, t.sender, t.recipient, t.body, t.images, t.every_seconds, t.cron, t.first_at, t.due_at, t.created_at, t.rung, t.mail_id, t.held_up, t.ended_at, t.ended_as
from agentmesh.timers t where t.session_id = %(session)s order by t.id;
