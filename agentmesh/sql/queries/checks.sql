-- The rules that hold for the rows at every instant, whatever raced or crashed before. Each statement returns the rows that
-- break it: session_id, agent_id, name, detail. store/checks.py runs them all in one snapshot; people see the sentence
-- above each. Each reads its tables once: no part of a large database is walked again for every row.

-- name: tree_is_whole
-- Every session has one root. Every other agent has its parent in the same session, one level above.
select s.id as session_id, s.root_id as agent_id, 'root' as name, 'the session has no root of its own' as detail
from agentmesh.sessions s left join agentmesh.agents r on r.id = s.root_id and r.parent_id is null and r.session_id = s.id
where r.id is null
union all
select a.session_id, a.id, a.name, format('is at depth %%s, its parent %%s of session %%s at %%s', a.depth, p.name, p.session_id, p.depth)
from agentmesh.agents a join agentmesh.agents p on p.id = a.parent_id
where a.session_id <> p.session_id or a.depth <> p.depth + 1
union all
select a.session_id, a.id, a.name, 'is a second root'
from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id where a.parent_id is null and a.id is distinct from s.root_id;

-- name: nobody_outlives_a_parent
-- No living agent has a dead ancestor or a session that has ended.
select a.session_id, a.id as agent_id, a.name, 'its parent ' || p.name || ' is dead' as detail
from agentmesh.agents a join agentmesh.agents p on p.id = a.parent_id where a.status <> 'dead' and p.status = 'dead'
union all
select a.session_id, a.id, a.name, 'its session has ended'
from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id where a.status <> 'dead' and s.ended_at is not null;

-- name: limits_hold
-- No agent that came after the limits were last changed is deeper than allowed, or was one child or one agent of its session too many.
select a.session_id, a.id as agent_id, a.name, format('is at depth %%s, the limit is %%s', a.depth, s.max_depth) as detail
from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id 
where a.depth > s.max_depth and a.status <> 'dead' and a.created_at > coalesce(s.limits_set_at, '-infinity')
union all
select p.session_id, p.id, p.name, format('has %%s living children, the limit is %%s', c.n, s.max_children)
from (
  select a.parent_id, count(*) as n, max(a.created_at) as newest from agentmesh.agents a
  where a.status <> 'dead' and (not a.clean or exists (select from agentmesh.tasks t where t.child = a.id and t.ended_at is null))
  group by a.parent_id) c
join agentmesh.agents p on p.id = c.parent_id join agentmesh.sessions s on s.id = p.session_id
where c.n > s.max_children and c.newest > coalesce(s.limits_set_at, '-infinity')
union all
select s.id, s.root_id, 'root', format('its session has %%s living agents, the limit is %%s', c.n, agentmesh.most_living(s))
from (
  select a.session_id, count(*) as n, max(a.created_at) as newest from agentmesh.agents a
  where a.status <> 'dead' and (not a.clean or exists (select from agentmesh.tasks t where t.child = a.id and t.ended_at is null))
  group by a.session_id) c
join agentmesh.sessions s on s.id = c.session_id
where c.n > agentmesh.most_living(s) and c.newest > coalesce(s.limits_set_at, '-infinity');

-- name: rights_only_shrink
-- A fork has its parent's permissions; an agent of a type has its parent's rules in addition to its own.
select a.session_id, a.id as agent_id, a.name, 'its permissions are not within those of ' || p.name as detail
from agentmesh.agents a join agentmesh.agents p on p.id = a.parent_id
where a.permissions <> p.permissions and (not a.clean and a.subagent_type is null or exists (
  select from jsonb_array_elements(p.permissions) with ordinality as l (layer, n) where a.permissions -> (l.n::integer - 1) is distinct from l.layer));

-- name: forks_begin_between_steps
-- A fork's inherited rows end with no call whose result comes later, and not after its parent's newest row.
select a.session_id, a.id as agent_id, a.name, format('inherits %%s up to row %%s', p.name, a.forked_at) as detail
from agentmesh.agents a join agentmesh.agents p on p.id = a.parent_id
where not a.clean and a.forked_at > 0 and (
  not exists (select from agentmesh.transcript t where t.agent_id = p.id and t.seq = a.forked_at)
  or exists (
    select from agentmesh.tool_calls c
    where c.agent_id = p.id and c.seq = (
        select max(b.seq) from agentmesh.tool_calls b where b.agent_id = p.id and b.seq <= a.forked_at)
      and coalesce(c.result_seq, a.forked_at + 1) > a.forked_at));

-- name: transcripts_have_no_gaps
-- The rows of a transcript are numbered from 1, without a gap.
select a.session_id, a.id as agent_id, a.name, format('%%s rows, from %%s to %%s', t.n, t.first, t.last) as detail
from (select t.agent_id, count(*) as n, min(t.seq) as first, max(t.seq) as last from agentmesh.transcript t group by t.agent_id) t
join agentmesh.agents a on a.id = t.agent_id
where t.first <> 1 or t.last <> t.n;

-- name: death_is_the_last_row
-- The last row of a dead agent is its death, and no other agent has such a row.
select a.session_id, a.id as agent_id, a.name,
  case when a.status = 'dead' then 'is dead, and its last row does not say so' else 'is alive, and a row says that it died' end as detail
from agentmesh.agents a
left join (select t.agent_id, max(t.seq) as last, min(t.seq) filter (where t.kind = 'event' and t.content ->> 'event' = 'killed') as died
           from agentmesh.transcript t group by t.agent_id) t on t.agent_id = a.id
where case when a.status = 'dead' then t.died is distinct from t.last or t.died is null else t.died is not null end;

-- name: the_dead_do_nothing
-- No agent sends, reads or receives mail after its death.
select a.session_id, a.id as agent_id, a.name, format('mail %%s is newer than its death', m.id) as detail
from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id
where a.status = 'dead' and (m.sent_at > a.died_at or m.read_at > a.died_at)
union all
select a.session_id, a.id, a.name, format('sent mail %%s after its death', m.id)
from agentmesh.agents a join agentmesh.mail m on m.sender = a.id
where a.status = 'dead' and m.sent_at > a.died_at;

-- name: mail_stays_in_its_session
-- Sender and recipient of a mail belong to one session.
select r.session_id, r.id as agent_id, r.name, format('mail %%s is of another session', m.id) as detail
from agentmesh.mail m join agentmesh.agents r on r.id = m.recipient left join agentmesh.agents s on s.id = m.sender
where m.session_id <> r.session_id or s.session_id <> r.session_id;

-- name: read_mail_is_shown
-- Mail that was read is shown, whole, in the recipient's row that it names.
select a.session_id, a.id as agent_id, a.name, format('mail %%s was read, and row %%s does not show it', m.id, m.read_seq) as detail
from agentmesh.mail m
join agentmesh.agents a on a.id = m.recipient
left join agentmesh.transcript t on t.agent_id = m.recipient and t.seq = m.read_seq
where m.read_at is not null and not coalesce(
  case t.kind
    when 'tool_result' then exists (
      select from jsonb_array_elements(case when jsonb_typeof(t.content #> '{result,results}') = 'array' then t.content #> '{result,results}' end) e
      where coalesce(e ->> 'agent_id', '') = coalesce(m.sender::text, '')
        and (m.body in (e ->> 'message', e ->> 'output', e ->> 'error') or e -> 'earlier_output' ? m.body))
    else t.kind in ('user', 'mail') and t.content ->> 'mail_id' = m.id::text and t.content ->> 'text' = m.body
  end, false);

-- name: shown_mail_is_read_once
-- No row shows mail that was not read there: mail is never shown twice, to another agent, or while it is unread.
select a.session_id, a.id as agent_id, a.name, format('row %%s shows mail %%s, which says otherwise', t.seq, t.content ->> 'mail_id') as detail
from agentmesh.transcript t
join agentmesh.agents a on a.id = t.agent_id
left join agentmesh.mail m on m.id = (t.content ->> 'mail_id')::bigint
where t.kind in ('user', 'mail') and t.content ? 'mail_id' and (m.recipient = t.agent_id and m.read_seq = t.seq) is not true
union all
select a.session_id, a.id, a.name, format('the wait in row %%s shows %%s messages, and %%s were read there', w.seq, w.shown, coalesce(r.n, 0))
from (
  select t.agent_id, t.seq, count(distinct coalesce(e ->> 'agent_id', 'user')) filter (where e ? 'message') as shown
  from agentmesh.transcript t
  left join lateral jsonb_array_elements(t.content #> '{result,results}') e on true
  where t.kind = 'tool_result' and t.content ->> 'name' = 'wait' and jsonb_typeof(t.content #> '{result,results}') = 'array'
    and not t.content ? 'copied'  -- another session's
  group by t.agent_id, t.seq) w
join agentmesh.agents a on a.id = w.agent_id
left join (select m.recipient, m.read_seq, count(*) as n from agentmesh.mail m where m.read_at is not null and (not m.automatic or m.about = 'process') group by m.recipient, m.read_seq) r
  on r.recipient = w.agent_id and r.read_seq = w.seq
where w.shown <> coalesce(r.n, 0);

-- name: mail_is_read_in_order
-- Between one sender and one recipient, no message is read before an older one.
select a.session_id, a.id as agent_id, a.name, format('mail %%s was read before the older %%s', m.id, m.older) as detail
from (
  select m.id, m.recipient, m.read_seq, lag(m.id) over pair as older, lag(m.read_seq) over pair as older_read
  from agentmesh.mail m where not m.automatic and m.withdrawn_at is null
  window pair as (partition by m.recipient, m.sender order by m.id)) m
join agentmesh.agents a on a.id = m.recipient
where m.older is not null and m.read_seq is not null and (m.older_read is null or m.older_read > m.read_seq);

-- name: idle_has_no_waking_mail
-- No idle agent has unread mail that should have woken it.
select a.session_id, a.id as agent_id, a.name, format('mail %%s is unread', min(m.id)) as detail
from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id
where a.status = 'idle' and not a.external and m.read_at is null and m.withdrawn_at is null and m.id > a.held_mail
group by a.id;

-- name: only_running_works
-- An agent that does not run has no call without a result and is inside no wait.
select a.session_id, a.id as agent_id, a.name, format('is %%s, and call %%s.%%s (%%s) is %%s', a.status, c.seq, c.ordinal, c.name, c.status) as detail
from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id
where c.status <> 'done' and a.status <> 'running'
union all
select a.session_id, a.id, a.name, format('is %%s, and inside a wait', a.status)
from agentmesh.wait w join agentmesh.agents a on a.id = w.waiter
where a.status = 'dead' or a.status <> 'running' and not a.external;

-- name: turns_add_up
-- An agent's row names nothing that lies in its future: turns, the last row of its last turn, epochs.
select a.session_id, a.id as agent_id, a.name, 'names a turn or an end that it has not had' as detail
from agentmesh.agents a
where a.interrupt_turn > a.turn or a.compact_turn > a.turn
  or (a.ended_seq is not null and not exists (
    select from agentmesh.transcript t where t.agent_id = a.id and t.seq = a.ended_seq and t.kind in ('assistant', 'error', 'event')))
union all
select a.session_id, a.id, a.name, format('call %%s.%%s was of epoch %%s, the agent is at %%s', c.seq, c.ordinal, c.epoch, a.epoch)
from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id where c.epoch > a.epoch
union all
select a.session_id, a.id, a.name, format('a model call is reserved in epoch %%s, the agent is at %%s', r.epoch, a.epoch)
from agentmesh.reservations r join agentmesh.agents a on a.id = r.agent_id where r.epoch > a.epoch
union all
select a.session_id, a.id, a.name, format('a model call was of turn %%s, the agent is in %%s', c.turn, a.turn)
from (select c.agent_id, max(c.turn) as turn from agentmesh.model_calls c group by c.agent_id) c
join agentmesh.agents a on a.id = c.agent_id where c.turn > a.turn;

-- name: owners_are_alive
-- The owner of an agent is a worker that has not ended and may run it.
select a.session_id, a.id as agent_id, a.name,
  format('worker %%s owns it, and %%s', w.id, case when w.ended_at is not null then 'has ended' else 'is of another session' end) as detail
from agentmesh.agents a join agentmesh.workers w on w.id = a.worker_id
where w.ended_at is not null or w.session_id <> a.session_id;

-- name: calls_have_one_result
-- Every finished call has exactly one result, in the row that it names; no other call has a result.
with result as (
  select t.agent_id, (t.content ->> 'seq')::bigint as seq, (t.content ->> 'ordinal')::integer as ordinal, count(*) as n, min(t.seq) as at_seq
  from agentmesh.transcript t where t.kind = 'tool_result' group by 1, 2, 3)
select a.session_id, a.id as agent_id, a.name,
  format('call %%s.%%s is %%s and has %%s results', coalesce(c.seq, r.seq), coalesce(c.ordinal, r.ordinal), coalesce(c.status, 'unknown'), coalesce(r.n, 0)) as detail
from agentmesh.tool_calls c
full join result r on r.agent_id = c.agent_id and r.seq = c.seq and r.ordinal = c.ordinal
join agentmesh.agents a on a.id = coalesce(c.agent_id, r.agent_id)
where coalesce(r.n, 0) <> case when c.status = 'done' then 1 else 0 end or r.at_seq is distinct from c.result_seq;

-- name: results_come_before_the_next_answer
-- No model was asked while a call of its last answer had no result.
select a.session_id, a.id as agent_id, a.name, format('the model answered in row %%s before the result in row %%s', t.answer, t.seq) as detail
from (
  select t.agent_id, t.seq, t.kind, t.content, max(t.seq) filter (where t.kind = 'assistant') over (partition by t.agent_id order by t.seq) as answer
  from agentmesh.transcript t where t.kind in ('assistant', 'tool_result')) t
join agentmesh.agents a on a.id = t.agent_id
where t.kind = 'tool_result' and (t.content ->> 'seq')::bigint is distinct from t.answer
union all
select a.session_id, a.id, a.name, format('call %%s.%%s has no result, and the model answered since', c.seq, c.ordinal)
from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id
where c.status <> 'done' and exists (select from agentmesh.transcript t where t.agent_id = c.agent_id and t.seq > c.seq and t.kind = 'assistant');

-- name: calls_are_the_models
-- Every answer has as many calls as the model asked for, and no call belongs to another row.
select a.session_id, a.id as agent_id, a.name, format('row %%s (%%s) asks for %%s calls and has %%s', c.seq, coalesce(t.kind, 'missing'),
  coalesce(jsonb_array_length(t.content -> 'calls')::text, 'no'), c.n) as detail
from (select c.agent_id, c.seq, count(*) as n from agentmesh.tool_calls c group by c.agent_id, c.seq) c
join agentmesh.agents a on a.id = c.agent_id
left join agentmesh.transcript t on t.agent_id = c.agent_id and t.seq = c.seq
where t.kind is distinct from 'assistant' or jsonb_array_length(t.content -> 'calls') <> c.n
union all
select a.session_id, a.id, a.name, format('row %%s asks for calls and has none', t.seq)
from agentmesh.transcript t join agentmesh.agents a on a.id = t.agent_id
where t.kind = 'assistant' and jsonb_array_length(t.content -> 'calls') > 0
  and not exists (select from agentmesh.tool_calls c where c.agent_id = t.agent_id and c.seq = t.seq);

-- name: waits_have_their_calls
-- A wait belongs to a call of its waiter that has no result yet, and waits for the agents that it lists.
select a.session_id, a.id as agent_id, a.name, format('waits for call %%s.%%s, which is %%s', w.seq, w.ordinal, coalesce(c.status, 'unknown')) as detail
from agentmesh.wait w
join agentmesh.agents a on a.id = w.waiter
left join agentmesh.tool_calls c on c.agent_id = w.waiter and c.seq = w.seq and c.ordinal = w.ordinal
where w.seq is not null and coalesce(c.status, 'done') = 'done'
union all
select a.session_id, a.id, a.name, 'waits for others than its wait lists'
from agentmesh.wait w
join agentmesh.agents a on a.id = w.waiter
cross join lateral (select array_agg(distinct (t ->> 'id')::uuid) as ids from jsonb_array_elements(w.targets) t where t ->> 'id' is not null) asked
cross join lateral (select array_agg(x.target order by x.target) as ids from agentmesh.waits x where x.waiter = w.waiter) stored
where asked.ids is distinct from stored.ids;

-- name: nobody_waits_in_a_circle
-- No agents wait for each other in a circle, tasks included.
with recursive edge as (
  select o.waiter, o.target from agentmesh.open_waits o
  union all
  select t.parent, t.child from agentmesh.tasks t where t.ended_at is null and not t.background),
walk (start, id) as (
  select e.waiter, e.target from edge e
  union
  select w.start, e.target from walk w join edge e on e.waiter = w.id)
select a.session_id, a.id as agent_id, a.name, 'waits, through others, for itself' as detail
from walk w join agentmesh.agents a on a.id = w.id where w.start = w.id;

-- name: a_person_is_asked
-- A call waits for a person exactly while its request waits for an answer; a question's answer is its result.
select a.session_id, a.id as agent_id, a.name, format('call %%s.%%s is with a person, and no request of it waits', c.seq, c.ordinal) as detail
from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id
left join agentmesh.requests r on r.agent_id = c.agent_id and r.seq = c.seq and r.ordinal = c.ordinal
where c.status = 'asking' and (r.id is null or r.answered_at is not null or r.cancelled_at is not null)
union all
select a.session_id, a.id, a.name, format('request %%s waits, and its call is %%s', left(r.id::text, 8), c.status)
from agentmesh.requests r
join agentmesh.tool_calls c on c.agent_id = r.agent_id and c.seq = r.seq and c.ordinal = r.ordinal
join agentmesh.agents a on a.id = r.agent_id
where r.answered_at is null and r.cancelled_at is null and c.status not in ('asking', 'open')
union all
select a.session_id, a.id, a.name, format('request %%s was answered, and its call is %%s', left(r.id::text, 8), c.status)
from agentmesh.requests r
join agentmesh.tool_calls c on c.agent_id = r.agent_id and c.seq = r.seq and c.ordinal = r.ordinal
join agentmesh.agents a on a.id = r.agent_id
where r.answered_at is not null and (r.kind = 'question' or r.answer ->> 'decision' = 'no') and c.status <> 'done';

-- name: tasks_are_worked_on
-- A call waits for a sub-agent exactly while that runs and works on it; the sub-agent is a child with a clean context.
select a.session_id, a.id as agent_id, a.name, format('call %%s.%%s is with a sub-agent that works on no task', c.seq, c.ordinal) as detail
from agentmesh.tool_calls c join agentmesh.agents a on a.id = c.agent_id
where c.status = 'delegated' and not exists (
  select from agentmesh.tasks t where t.parent = c.agent_id and t.seq = c.seq and t.ordinal = c.ordinal and t.ended_at is null and not t.background)
  and not exists (select from agentmesh.batches b where b.parent = c.agent_id and b.seq = c.seq and b.ordinal = c.ordinal and b.ended_at is null)
union all
select a.session_id, a.id, a.name, case when a.parent_id is distinct from t.parent or not a.clean then 'works on a task of somebody else''s'
  else format('is %%s, and its task goes on', a.status) end
from agentmesh.tasks t join agentmesh.agents a on a.id = t.child
where t.ended_at is null and a.status <> 'running' or a.parent_id is distinct from t.parent or not a.clean;

-- name: batches_add_up
-- A batch counts its items as they are, and ends with the last of them; an item runs exactly while its task does.
select b.session_id, a.id as agent_id, a.name, format('the batch of call %%s.%%s counts %%s, and its items are %%s', b.seq, b.ordinal,
    row(b.items, b.started, b.running, b.done, b.failed), row(i.items, i.started, i.running, i.done, i.failed)) as detail
from agentmesh.batches b join agentmesh.agents a on a.id = b.parent
cross join lateral (
  select count(*) as items, count(*) filter (where i.state <> 'queued') as started, count(*) filter (where i.state = 'running') as running,
    count(*) filter (where i.state = 'done') as done, count(*) filter (where i.state = 'failed') as failed
  from agentmesh.batch_items i where i.parent = b.parent and i.seq = b.seq and i.ordinal = b.ordinal) i
where (b.items, b.started, b.running, b.done, b.failed) <> (i.items, i.started, i.running, i.done, i.failed)
  or (b.ended_at is null) <> (b.done + b.failed < b.items)
union all
select a.session_id, a.id, a.name, format('item %%s of call %%s.%%s is %%s, and its task does not say so', i.place, i.seq, i.ordinal, i.state)
from agentmesh.batch_items i join agentmesh.agents a on a.id = i.parent
left join agentmesh.tasks t on t.parent = i.parent and t.seq = i.seq and t.ordinal = i.ordinal and t.place = i.place
where (i.state = 'running') <> (t.child is not null and t.ended_at is null) or i.child is distinct from t.child;

-- name: figures_add_up
-- An agent's usage is the sum of its model calls, and its number of tool calls is right.
select a.session_id, a.id as agent_id, a.name,
  format('counts %%s calls, %%s tokens, %%s USD; its model calls are %%s, %%s, %%s', a.model_calls, a.input_tokens + a.output_tokens, a.cost_usd,
    coalesce(c.n, 0), coalesce(c.input_tokens + c.output_tokens, 0), coalesce(c.cost_usd, 0)) as detail
from agentmesh.agents a
left join (
  select c.agent_id, count(*) as n, sum(c.input_tokens) as input_tokens, sum(c.output_tokens) as output_tokens, sum(c.cached_tokens) as cached_tokens,
    sum(coalesce(c.cost_usd, 0)) as cost_usd, count(*) filter (where c.cost_usd is null) as unpriced
  from agentmesh.model_calls c group by c.agent_id) c on c.agent_id = a.id
where (a.model_calls, a.input_tokens, a.output_tokens, a.cached_tokens, a.cost_usd, a.unpriced_calls)
  <> (coalesce(c.n, 0), coalesce(c.input_tokens, 0), coalesce(c.output_tokens, 0), coalesce(c.cached_tokens, 0), coalesce(c.cost_usd, 0), coalesce(c.unpriced, 0))
union all
select a.session_id, a.id, a.name, format('counts %%s tool calls and has %%s', a.tool_calls, coalesce(c.n, 0))
from agentmesh.agents a
left join (select c.agent_id, count(*) as n from agentmesh.tool_calls c where c.status = 'done' group by c.agent_id) c on c.agent_id = a.id
where a.tool_calls <> coalesce(c.n, 0);

-- name: budgets_add_up
-- A session's booked usage is the usage of its agents.
select s.id as session_id, s.root_id as agent_id, 'root' as name,
  format('booked are %%s tokens and %%s USD, used %%s and %%s', coalesce(u.tokens, 0) + coalesce(b.tokens, 0), coalesce(u.cost_usd, 0) + coalesce(b.cost_usd, 0),
    coalesce(a.tokens, 0), coalesce(a.cost_usd, 0)) as detail
from agentmesh.sessions s
left join agentmesh.session_usage u on u.session_id = s.id
left join (select b.session_id, sum(b.tokens) as tokens, sum(b.cost_usd) as cost_usd from agentmesh.bookings b group by b.session_id) b on b.session_id = s.id
left join (select a.session_id, sum(a.input_tokens - a.cached_tokens + a.output_tokens) as tokens, sum(a.cost_usd) as cost_usd
           from agentmesh.agents a group by a.session_id) a on a.session_id = s.id
where (coalesce(a.tokens, 0), coalesce(a.cost_usd, 0))
  <> (coalesce(u.tokens, 0) + coalesce(b.tokens, 0), coalesce(u.cost_usd, 0) + coalesce(b.cost_usd, 0));

-- name: everybody_works_in_its_session
-- Every agent works in a workspace of its session that is there or is to be made; every session has one directory, its own.
select a.session_id, a.id as agent_id, a.name, format('works in %%s, which is %%s and of session %%s', w.id, w.state, w.session_id) as detail
from agentmesh.agents a join agentmesh.workspaces w on w.id = a.workspace_id
where w.session_id <> a.session_id or (a.status <> 'dead' and w.state in ('removing', 'removed'))
union all
select s.id, s.root_id, 'root', 'its session has not the directory that it names'
from agentmesh.sessions s left join agentmesh.workspaces w on w.session_id = s.id and w.kind = 'shared'
where (w.path, w.host, w.os_user) is distinct from (s.workdir, s.host, s.os_user)
union all
select w.session_id, null, '', format('workspace %%s was made from one of session %%s', w.id, o.session_id)
from agentmesh.workspaces w join agentmesh.workspaces o on o.id = w.origin where o.session_id <> w.session_id;

-- name: snapshots_are_of_what_happened
-- A workspace's newest tree is that of a snapshot of its. A snapshot of a call is of one that is done, in its agent's workspace; lines add up.
select w.session_id, null::uuid as agent_id, '' as name, format('workspace %%s has %%s, and no snapshot of it', w.id, coalesce(w.head, 'no tree')) as detail
from agentmesh.workspaces w
where w.head is not null and not exists (select from agentmesh.snapshots s where s.workspace_id = w.id and s.tree = w.head)
  or w.head is null and exists (select from agentmesh.snapshots s where s.workspace_id = w.id)
union all
select a.session_id, a.id, a.name, format('snapshot %%s is of call %%s.%%s, which is %%s', s.id, s.seq, s.ordinal, coalesce(c.status, 'unknown'))
from agentmesh.snapshots s join agentmesh.agents a on a.id = s.agent_id
left join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal
where s.kind = 'call' and (c.status is distinct from 'done' or s.workspace_id <> a.workspace_id)
union all
select w.session_id, s.agent_id, '', format('snapshot %%s counts %%s files and has %%s', s.id, s.files, coalesce(c.n, 0))
from agentmesh.snapshots s join agentmesh.workspaces w on w.id = s.workspace_id
left join (select c.snapshot_id, count(*) as n from agentmesh.changes c group by c.snapshot_id) c on c.snapshot_id = s.id
where coalesce(c.n, 0) <> least(s.files, 2000)
union all
select a.session_id, a.id, a.name, format('counts +%%s -%%s lines; its snapshots are +%%s -%%s', a.lines_added, a.lines_removed, coalesce(s.added, 0), coalesce(s.removed, 0))
from agentmesh.agents a
left join (select s.agent_id, sum(s.added) as added, sum(s.removed) as removed from agentmesh.snapshots s where s.kind = 'call' group by s.agent_id) s on s.agent_id = a.id
where (a.lines_added, a.lines_removed) <> (coalesce(s.added, 0), coalesce(s.removed, 0));

-- name: a_merge_is_whole_or_absent
-- A merge that is done, or undone, has one snapshot in its target, and no other has one; its two workspaces belong together.
select m.session_id, m.source_agent as agent_id, a.name, format('merge %%s is %%s and has %%s snapshots', m.id, m.state, coalesce(s.n, 0)) as detail
from agentmesh.merges m join agentmesh.agents a on a.id = m.source_agent
left join (select s.merge_id, s.workspace_id, count(*) as n from agentmesh.snapshots s where s.merge_id is not null group by s.merge_id, s.workspace_id) s
  on s.merge_id = m.id
where coalesce(s.n, 0) <> case when m.state in ('done', 'undone') then 1 else 0 end or s.workspace_id <> m.target
union all
select m.session_id, m.source_agent, a.name, format('merge %%s is between trees of which none was made from the other, or of another session', m.id)
from agentmesh.merges m join agentmesh.agents a on a.id = m.source_agent
join agentmesh.workspaces o on o.id = m.source join agentmesh.workspaces t on t.id = m.target
where o.session_id <> m.session_id or t.session_id <> m.session_id or case when m.is_up then o.kind else t.kind end <> 'own'
union all
select m.session_id, m.source_agent, a.name, format('merge %%s is being written into files that are %%s', m.id, w.state)
from agentmesh.merges m join agentmesh.agents a on a.id = m.source_agent join agentmesh.workspaces w on w.id = m.target
where m.state = 'writing' and w.state <> 'ready';

-- name: leases_end_with_their_turn
-- Only an agent that runs holds a lease, in its session's directory, and its row says so.
select a.session_id, a.id as agent_id, a.name, format('is %%s and holds %%s', a.status, l.prefix) as detail
from agentmesh.leases l join agentmesh.agents a on a.id = l.agent_id join agentmesh.workspaces w on w.id = l.workspace_id
where a.status <> 'running' or not a.holds_lease or w.id <> a.workspace_id or w.kind <> 'shared';

-- name: images_are_stored
-- Every image that mail or a row of a transcript refers to is stored in its session.
select a.session_id, a.id as agent_id, a.name, format('row %%s refers to the image %%s, which is not stored', t.seq, r ->> 'name') as detail
from agentmesh.transcript t join agentmesh.agents a on a.id = t.agent_id
cross join lateral jsonb_array_elements(agentmesh.images_of(t.kind, t.content)) r
where (t.kind = 'user' and t.content ? 'images' or t.kind = 'tool_result' and t.content ->> 'name' in ('read', 'wait'))
  and not exists (select from agentmesh.images i where i.session_id = a.session_id and i.digest = r ->> 'sha256')
union all
select a.session_id, a.id, a.name, format('mail %%s refers to the image %%s, which is not stored', m.id, r ->> 'name')
from agentmesh.mail m join agentmesh.agents a on a.id = m.recipient cross join lateral jsonb_array_elements(m.images) r
where not exists (select from agentmesh.images i where i.session_id = a.session_id and i.digest = r ->> 'sha256');
