-- The verbs: fork, send, wait, kill, interrupt, reap, and what they share.
--
-- Every public function here is one statement in one short transaction and follows one protocol:
--   lock   the session's row (fork, kill, reap, a wait that registers), then all agents' rows it will touch, by id, once;
--   look   in a statement after that, so that its snapshot is newer than the locks;
--   write  and notify. Times are taken after the locks.
-- Nothing takes FOR UPDATE or FOR SHARE: the key-share locks of foreign keys must not wait for a verb.
-- Where it is called often, a check is assigned and not performed: an assignment is only evaluated (1 us), a perform is a query (8 us). For
-- the same reason no condition of those has a look inside that is seldom needed: it would be prepared each time.

-- Who calls on behalf of a running agent: its worker's lease, the tool call to answer, if any, and a note for its result.
-- An external agent has a lease and no calls: whoever runs it keeps its conversation.
-- No worker_id: nobody calls ("caller is not null" would ask whether all fields are known).
create type agentmesh.caller as (worker_id bigint, epoch bigint, seq bigint, ordinal integer, note text);

create function agentmesh.refuse(code text, message text, hint text default '') returns void
language plpgsql as $$
begin
  raise exception using errcode = refuse.code, message = refuse.message, hint = refuse.hint;
end $$;

-- LOCK, then LOOK works only where each statement has a snapshot of its own.
create function agentmesh.require_read_committed() returns boolean
language plpgsql as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    perform agentmesh.refuse('AM003', format('agentmesh verbs run only at isolation level READ COMMITTED, not %s',
      upper(current_setting('transaction_isolation'))), 'Call them outside the transaction, or begin it with ISOLATION LEVEL READ COMMITTED.');
  end if;
  return true;
end $$;

create function agentmesh.lock_session(session uuid) returns agentmesh.sessions
language sql as $$
  update agentmesh.sessions set tree_version = tree_version + 1 where id = session returning *
$$;

create function agentmesh.lock_agents(ids uuid[]) returns setof agentmesh.agents
language sql as $$
  select * from agentmesh.agents where id = any (ids) order by id for no key update
$$;

create function agentmesh.label(agent agentmesh.agents) returns text
language sql immutable as $$
  select format('%s (%s)', agent.name, left(agent.id::text, 8))
$$;

create function agentmesh.require_agent(agent agentmesh.agents, id uuid) returns boolean
language plpgsql as $$
begin
  if agent.id is null then
    perform agentmesh.refuse('AM010', format('there is no agent %s', coalesce(require_agent.id::text, 'null')),
      'agentmesh ps --all lists the agents.');
  end if;
  return true;
end $$;

create function agentmesh.require_living(agent agentmesh.agents, id uuid) returns boolean
language plpgsql as $$
declare
  fine boolean := agentmesh.require_agent(agent, id);
begin
  if agent.status = 'dead' then
    perform agentmesh.refuse('AM011', format('%s is dead', agentmesh.label(agent)), 'Its transcript can still be read. Fork a new agent for more work.');
  end if;
  return true;
end $$;

-- Only the owner may go on: worker, epoch and status are those of the locked row.
create function agentmesh.fence(agent agentmesh.agents, caller agentmesh.caller) returns boolean
language plpgsql as $$
declare
  fine boolean := agentmesh.require_read_committed();
begin
  if agent.id is null or agent.status <> 'running' or agent.worker_id is distinct from caller.worker_id
     or agent.epoch is distinct from caller.epoch then
    perform agentmesh.refuse('AM001', format('worker %s no longer owns %s', caller.worker_id, coalesce(agentmesh.label(agent), 'the agent')),
      'Stop running it: another worker does, or it is dead.');
  end if;
  return true;
end $$;

create function agentmesh.require_open_call(agent uuid, caller agentmesh.caller) returns boolean
language plpgsql as $$
begin
  if not exists (select from agentmesh.tool_calls c where c.agent_id = agent and c.seq = caller.seq and c.ordinal = caller.ordinal
                 and c.status <> 'done') then
    if caller.seq is not null or not exists (select from agentmesh.agents a where a.id = agent and a.external) then
      perform agentmesh.refuse('AM002', format('call %s of step %s already has its result', caller.ordinal, caller.seq), 'Read it from the transcript.');
    end if;
  end if;
  return true;
end $$;

-- Append one row to the transcript of an agent whose row is locked.
create function agentmesh.append(agent uuid, kind text, content jsonb) returns bigint
language plpgsql as $$
declare
  at_seq bigint;
begin
  insert into agentmesh.transcript as t (agent_id, seq, kind, content, created_at)
  select append.agent, coalesce(max(o.seq), 0) + 1, append.kind, append.content, clock_timestamp()
  from agentmesh.transcript o where o.agent_id = append.agent
  returning t.seq into at_seq;
  return at_seq;
end $$;

-- Write the one result of a tool call, if one is to be answered, of an agent whose row is locked.
create function agentmesh.close_call(agent uuid, caller agentmesh.caller, result jsonb) returns bigint
language plpgsql as $$
declare
  done agentmesh.tool_calls;
begin
  if caller.seq is null then
    return null;
  end if;
  update agentmesh.tool_calls c set status = 'done', started_at = coalesce(c.started_at, clock_timestamp()), ended_at = clock_timestamp(),
    epoch = caller.epoch, result_seq = (select coalesce(max(t.seq), 0) + 1 from agentmesh.transcript t where t.agent_id = agent)
  where c.agent_id = agent and c.seq = caller.seq and c.ordinal = caller.ordinal
  returning c.* into done;
  insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
  values (agent, done.result_seq, 'tool_result', jsonb_build_object(
    'seq', done.seq, 'ordinal', done.ordinal, 'call_id', done.call_id, 'name', done.name,
    'result', case when caller.note is null then result else result || jsonb_build_object('note', caller.note) end), clock_timestamp());
  update agentmesh.agents a set tool_calls = a.tool_calls + 1 where a.id = agent;
  return done.result_seq;
end $$;

-- A hint to the agent's owner and to screens; delivered with the commit.
create function agentmesh.notify_agent(agent uuid, session uuid, what text) returns void
language plpgsql as $$
begin
  perform pg_notify('agent_event_' || agent, what), pg_notify('session_event_' || session, what || ' ' || agent);
end $$;

create function agentmesh.notify_work(session uuid) returns void
language plpgsql as $$
begin
  perform pg_notify('agentmesh_work', session::text);
end $$;

-- Tell everyone who waits for one of these agents to look again.
create function agentmesh.notify_waiters(targets uuid[]) returns void
language plpgsql as $$
begin
  perform pg_notify('agent_event_' || w.waiter, 'waited') from (select distinct waiter from agentmesh.waits where target = any (targets)) w;
end $$;

create function agentmesh.normal_name(name text) returns text
language plpgsql immutable as $$
declare
  normal text := regexp_replace(lower(btrim(coalesce(name, ''), E' \t\r\n')), '[ \t\r\n]+', '-', 'g');
begin
  if normal !~ '^[a-z0-9][a-z0-9_.-]{0,31}$' then
    perform agentmesh.refuse('AM030', format('%s is no name for an agent', quote_literal(left(coalesce(name, ''), 60))),
      'Use 1 to 32 characters a-z, 0-9, "_", "." or "-", the first a letter or digit; blanks become "-".');
  elsif normal in ('parent', 'user', 'all', 'root') then
    perform agentmesh.refuse('AM031', format('the name %s is reserved', quote_literal(normal)), 'Choose another name.');
  end if;
  return normal;
end $$;

-- The name itself or, if an agent of the session (dead or alive) has it, the first free of name-2, name-3, ...
-- The caller holds the session's row.
create function agentmesh.free_name(session uuid, name text) returns text
language plpgsql as $$
declare
  candidate text := name;
  n integer := 1;
begin
  while exists (select from agentmesh.agents a where a.session_id = session and a.name = candidate) loop
    n := n + 1;
    candidate := rtrim(left(free_name.name, 31 - length(n::text)), '-') || '-' || n;
  end loop;
  return candidate;
end $$;

-- Refuse a body that is empty or too large.
create function agentmesh.require_body(body text) returns boolean
language plpgsql as $$
begin
  if body is null or btrim(body, E' \t\r\n') = '' then
    perform agentmesh.refuse('AM020', 'the message is empty', 'Say what you want to tell.');
  elsif octet_length(body) > 262144 then
    perform agentmesh.refuse('AM021', format('the message is %s bytes long, the limit is 262144 (256 KiB)', octet_length(body)),
      'Write it to a file and send the path.');
  end if;
  return true;
end $$;

-- Wake the locked agent if it is idle and this mail may wake it. 25 wake-ups in a row by agents, in which it did
-- nothing but send, are the last: two agents that thank each other must end.
create function agentmesh.wake(agent agentmesh.agents, mail_id bigint, by_user boolean) returns void
language plpgsql as $$
begin
  if agent.status <> 'idle' or agent.external then
    return;
  elsif not by_user and agent.agent_wakes >= 25 then
    if agent.held_mail < coalesce((select min(m.id) from agentmesh.mail m where m.recipient = agent.id and m.read_at is null and m.withdrawn_at is null), 0) then
      perform agentmesh.append(agent.id, 'event', jsonb_build_object('event', 'held',
        'text', 'woken 25 times in a row by agents only: it stays idle, its mail unread, until a person writes to it'));
    end if;
    update agentmesh.agents a set held_mail = mail_id where a.id = agent.id;
    perform agentmesh.notify_agent(agent.id, agent.session_id, 'held');
  else
    update agentmesh.agents a set status = 'running', turn = a.turn + 1, queued_at = clock_timestamp(),
      agent_wakes = case when by_user then 0 else a.agent_wakes + 1 end
    where a.id = agent.id;
    perform agentmesh.notify_work(agent.session_id);
  end if;
end $$;

-- Store one mail for the locked recipient, wake it, tell it.
create function agentmesh.deliver(recipient agentmesh.agents, sender uuid, body text, key text default null,
  automatic boolean default false, failed boolean default false) returns bigint
language plpgsql as $$
declare
  new_id bigint;
begin
  insert into agentmesh.mail (session_id, sender, recipient, body, key, automatic, failed)
  values (recipient.session_id, deliver.sender, recipient.id, deliver.body, deliver.key, deliver.automatic, deliver.failed)
  returning id into new_id;
  if recipient.status = 'idle' then
    perform agentmesh.wake(recipient, new_id, deliver.sender is null);
  elsif recipient.worker_id is null and not recipient.external then
    perform agentmesh.notify_work(recipient.session_id);
  end if;
  perform agentmesh.notify_agent(recipient.id, recipient.session_id, 'mail');
  return new_id;
end $$;

-- The result of a send tool.
create function agentmesh.close_sent(sender agentmesh.agents, recipient agentmesh.agents, mail_id bigint, caller agentmesh.caller) returns void
language plpgsql as $$
begin
  perform agentmesh.close_call(sender.id, caller, jsonb_build_object('status', 'sent',
    'to', jsonb_build_object('agent_id', recipient.id, 'name', recipient.name), 'message_id', mail_id));
  perform pg_notify('session_event_' || sender.session_id, 'step ' || sender.id);
end $$;

-- send: put one message into the recipient's mailbox; durable when it returns. sender null is the user.
-- The same key again, for the same sender and recipient, returns the same id.
create function agentmesh.send(sender uuid, recipient uuid, body text, key text default null, caller agentmesh.caller default null)
returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
  fine boolean := agentmesh.require_read_committed();
  a_row agentmesh.agents;
  from_agent agentmesh.agents;
  to_agent agentmesh.agents;
  known record;
  new_id bigint;
  waiting integer;
  full_at integer;
begin
  if send.recipient is null then
    perform agentmesh.require_agent(null, null);
  end if;
  if send.sender = send.recipient then
    perform agentmesh.refuse('AM013', 'an agent cannot send to itself', 'Think on, or send to another agent.');
  end if;
  -- lock_agents, written out: most calls in the system are of this function, and a call of that one is a tenth of its time.
  for a_row in select * from agentmesh.agents a where a.id in (send.sender, send.recipient) order by a.id for no key update loop
    if a_row.id = send.sender then from_agent := a_row; else to_agent := a_row; end if;
  end loop;
  if (send.caller).worker_id is not null then
    fine := agentmesh.fence(from_agent, send.caller) and agentmesh.require_open_call(send.sender, send.caller);
  end if;
  fine := agentmesh.require_agent(to_agent, send.recipient);
  if send.sender is not null then
    fine := agentmesh.require_agent(from_agent, send.sender);
    if from_agent.session_id <> to_agent.session_id then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(to_agent)), 'Agents reach only their own session.');
    end if;
  end if;
  if octet_length(send.key) not between 1 and 200 then
    perform agentmesh.refuse('AM004', format('the key is %s bytes long, not 1 to 200', octet_length(send.key)), 'Take a shorter one, a UUID for example.');
  elsif send.key is not null then
    select m.id, m.body into known from agentmesh.mail m
    where m.recipient = send.recipient and m.sender is not distinct from send.sender and m.key = send.key;
    if found then
      if known.body is distinct from send.body then
        perform agentmesh.refuse('AM023', format('the key %s was already used for another message', quote_literal(left(send.key, 60))),
          'Take a new key for a new message.');
      end if;
      if (send.caller).worker_id is not null then
        perform agentmesh.close_sent(from_agent, to_agent, known.id, send.caller);
      end if;
      return known.id;
    end if;
  end if;
  fine := agentmesh.require_body(send.body) and (send.sender is null or agentmesh.require_living(from_agent, send.sender))
    and agentmesh.require_living(to_agent, send.recipient);
  select s.max_unread, (select count(*) from (
      select from agentmesh.mail m where m.recipient = send.recipient and m.read_at is null and m.withdrawn_at is null limit s.max_unread) unread)
  into full_at, waiting from agentmesh.sessions s where s.id = to_agent.session_id;
  if waiting >= full_at then
    -- Mail from an agent that the recipient is waiting for does not count: the wait is about to take it.
    if not exists (select from agentmesh.waits w where w.waiter = send.recipient and w.target = send.sender) then
      perform agentmesh.refuse('AM022', format('the mailbox of %s is full: %s unread messages', agentmesh.label(to_agent), waiting),
        'Do not retry at once: it has to read first. Kill it, or wait for it.');
    end if;
  end if;
  new_id := agentmesh.deliver(to_agent, send.sender, send.body, send.key);
  if from_agent.owes_report then
    update agentmesh.agents a set owes_report = false where a.id = send.sender;
  end if;
  if (send.caller).worker_id is not null then
    perform agentmesh.close_sent(from_agent, to_agent, new_id, send.caller);
  end if;
  return new_id;
end $$;

-- The seq up to which a child forked from this agent now inherits: everything before the oldest step that still has
-- a call without result. One statement, so that it is true at one instant also when the agent is not locked.
create function agentmesh.fork_point(agent uuid) returns bigint
language sql as $$
  select coalesce(
    (select min(c.seq) - 1 from agentmesh.tool_calls c where c.agent_id = agent and c.status <> 'done'),
    (select max(t.seq) from agentmesh.transcript t where t.agent_id = agent),
    0)
$$;

-- The newest place, not after this row of the agent's, from which a child can go on: no call before it has its result later. What it is
-- for a row that is there never changes: results that are still to come have higher seqs.
create function agentmesh.step_boundary(agent agentmesh.agents, at bigint) returns bigint
language plpgsql stable as $$
declare
  last bigint := (select coalesce(max(t.seq), 0) from agentmesh.transcript t where t.agent_id = agent.id);
  step bigint := (select max(c.seq) from agentmesh.tool_calls c where c.agent_id = agent.id and c.seq <= step_boundary.at);
begin
  if step_boundary.at is null or step_boundary.at not between 0 and last then
    perform agentmesh.refuse('AM004', format('%s has no row %s: its newest is %s', agentmesh.label(agent), coalesce(step_boundary.at::text, 'null'), last),
      'agentmesh log --rows shows them with their numbers; 0 is before its first.');
  end if;
  return case when exists (select from agentmesh.tool_calls c where c.agent_id = agent.id and c.seq = step
                           and coalesce(c.result_seq, step_boundary.at + 1) > step_boundary.at)
    then step - 1 else step_boundary.at end;
end $$;

-- What a refused fork can use instead.
create function agentmesh.idle_children_hint(agent uuid) returns text
language sql as $$
  select coalesce('Do not retry. Idle children that can be given more work by send, or ended by kill: '
    || string_agg(agentmesh.label(c), ', ' order by c.created_at) || '.',
    'Do not retry. No child is idle: wait for one, or end one by kill.')
  from (select a.* from agentmesh.agents a where a.parent_id = agent and a.status = 'idle' and not a.clean order by a.created_at limit 8) c
$$;

-- Whether an agent counts against limits and stands in lists: a task's child does only while its task runs.
create function agentmesh.counts(agent agentmesh.agents) returns boolean
language sql immutable as $$
  select agent.status <> 'dead' and not (agent.clean and agent.status = 'idle')
$$;

create function agentmesh.require_room(parent agentmesh.agents, session agentmesh.sessions) returns void
language plpgsql as $$
declare
  living integer;
  next_call record;
  refusal jsonb;
begin
  if parent.depth >= session.max_depth then
    perform agentmesh.refuse('AM032', format('%s is at depth %s, the limit of the session (max_depth)', agentmesh.label(parent), parent.depth),
      'Do not retry. Do the work yourself, or ask an agent nearer to the root to fork.');
  end if;
  -- Whoever makes an agent has raised tree_version: where fewer were ever made than may live, nobody need be counted.
  if session.tree_version > session.max_children then
    select count(*) into living from agentmesh.agents a where a.parent_id = parent.id and agentmesh.counts(a);
  end if;
  if living >= session.max_children then
    perform agentmesh.refuse('AM033', format('%s has %s living children, the limit of the session (max_children)', agentmesh.label(parent), living),
      agentmesh.idle_children_hint(parent.id));
  end if;
  living := null;
  if session.tree_version >= session.max_agents then
    select count(*) into living from agentmesh.agents a where a.session_id = session.id and a.status <> 'dead' and agentmesh.counts(a);
  end if;
  if living >= session.max_agents then
    perform agentmesh.refuse('AM034', format('the session has %s living agents, its limit (max_agents)', living),
      agentmesh.idle_children_hint(parent.id));
  end if;
  select * into next_call from agentmesh.estimate(parent.id);
  refusal := agentmesh.budget_refusal(parent, session, next_call.tokens, next_call.cost_usd);
  if refusal is not null then
    perform agentmesh.refuse('AM035', refusal ->> 'error', refusal ->> 'hint');
  end if;
end $$;

-- fork: make a child that inherits the parent's conversation by reference. With a prompt it is running from this
-- commit on; without, it is idle. As a tool (caller given) the prompt comes from the parent, else from the user.
-- at: it inherits up to that row of the parent's and no further, or to before the step in which that stands.
create function agentmesh.fork(parent uuid, name text, prompt text default null, caller agentmesh.caller default null, at bigint default null) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  session agentmesh.sessions;
  parent_row agentmesh.agents;
  child agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = fork.parent));
  if (fork.caller).worker_id is null then
    select * into parent_row from agentmesh.agents a where a.id = fork.parent;
  else
    select * into parent_row from agentmesh.lock_agents(array[fork.parent]);
    perform agentmesh.fence(parent_row, fork.caller);
    perform agentmesh.require_open_call(fork.parent, fork.caller);
  end if;
  if session.ended_at is not null then
    perform agentmesh.refuse('AM016', 'the session has ended', 'Start a new one.');
  end if;
  perform agentmesh.require_living(parent_row, fork.parent);
  if fork.prompt is not null then
    perform agentmesh.require_body(fork.prompt);
  end if;
  child.name := agentmesh.free_name(session.id, agentmesh.normal_name(fork.name));
  perform agentmesh.require_room(parent_row, session);
  insert into agentmesh.agents (session_id, parent_id, name, depth, subagent_type, status, model, settings_id, permissions, forked_at, turn)
  values (session.id, fork.parent, child.name, parent_row.depth + 1, parent_row.subagent_type,
    case when fork.prompt is null then 'idle' else 'running' end, parent_row.model, parent_row.settings_id, parent_row.permissions,
    case when fork.at is null then agentmesh.fork_point(fork.parent) else agentmesh.step_boundary(parent_row, fork.at) end,
    case when fork.prompt is null then 0 else 1 end)
  returning * into child;
  if fork.prompt is not null then
    insert into agentmesh.mail (session_id, sender, recipient, body)
    values (session.id, case when (fork.caller).worker_id is null then null else fork.parent end, child.id, fork.prompt);
    perform agentmesh.notify_work(session.id);
  end if;
  perform agentmesh.notify_agent(child.id, session.id, 'forked');
  if (fork.caller).worker_id is not null then
    perform agentmesh.close_call(fork.parent, fork.caller, jsonb_build_object('agent_id', child.id, 'name', child.name));
  end if;
  return child.id;
end $$;

-- An agent and all its descendants. (Such definer functions only read, and are what the reader's views call.)
create function agentmesh.subtree(agent uuid) returns setof uuid
language sql stable security definer rows 16 set search_path = pg_catalog as $$
  with recursive tree (id) as (
    select agent
    union all
    select a.id from tree join agentmesh.agents a on a.parent_id = tree.id)
  select id from tree
$$;

-- Give every open call of these locked agents its one result.
create function agentmesh.close_open_calls(ids uuid[], result jsonb) returns void
language sql as $$
  with open_call as (
    select c.*, row_number() over (partition by c.agent_id order by c.seq, c.ordinal) as n
    from agentmesh.tool_calls c where c.agent_id = any (ids) and c.status <> 'done'),
  placed as (
    select o.*, o.n + coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = o.agent_id), 0) as at_seq from open_call o),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select p.agent_id, p.at_seq, 'tool_result', jsonb_build_object(
      'seq', p.seq, 'ordinal', p.ordinal, 'call_id', p.call_id, 'name', p.name, 'result', close_open_calls.result), clock_timestamp()
    from placed p),
  counted as (
    update agentmesh.agents a set tool_calls = a.tool_calls + o.n
    from (select p.agent_id, count(*) as n from placed p group by p.agent_id) o where a.id = o.agent_id)
  update agentmesh.tool_calls c set status = 'done', ended_at = clock_timestamp(), result_seq = p.at_seq
  from placed p where c.agent_id = p.agent_id and c.seq = p.seq and c.ordinal = p.ordinal
$$;

-- End these locked, living agents for good; the death event is the last row of each.
create function agentmesh.bury(ids uuid[], session uuid, killed_by uuid) returns void
language plpgsql as $$
declare
  killer text := coalesce((select a.name from agentmesh.agents a where a.id = bury.killed_by), 'the user');
begin
  perform agentmesh.end_tasks_of_dead(ids);
  perform agentmesh.cancel_requests(ids);
  perform agentmesh.close_open_calls(ids, '{"error": "killed"}');
  delete from agentmesh.reservations r where r.agent_id = any (ids);
  delete from agentmesh.wait w where w.waiter = any (ids);
  insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
  select v.id, coalesce((select max(t.seq) from agentmesh.transcript t where t.agent_id = v.id), 0) + 1, 'event',
    jsonb_build_object('event', 'killed', 'text', 'killed by ' || killer, 'by', bury.killed_by), clock_timestamp()
  from unnest(ids) as v (id);
  update agentmesh.agents a set status = 'dead', died_at = clock_timestamp(), killed_by = bury.killed_by, worker_id = null, epoch = a.epoch + 1
  where a.id = any (ids);
  perform agentmesh.notify_agent(v.id, session, 'dead') from unnest(ids) as v (id);
  perform agentmesh.notify_waiters(ids);
end $$;

-- kill: end the target and all its descendants in one commit; returns who died, target first, and nobody when the
-- target is dead already. killed_by, if given, must be an ancestor of the target.
create function agentmesh.kill(target uuid, killed_by uuid default null, caller agentmesh.caller default null)
returns table (agent_id uuid, name text)
language plpgsql as $$
#variable_conflict use_column
declare
  session uuid := (select a.session_id from agentmesh.agents a where a.id = kill.target);
  tree uuid[];
  victim agentmesh.agents;
  killer agentmesh.agents;
  dying uuid[] := '{}';
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session(session);
  tree := array(select agentmesh.subtree(kill.target));
  -- The target's parent too: the target may be its task, whose call gets its result now.
  perform agentmesh.lock_agents(tree || kill.killed_by || (select a.parent_id from agentmesh.agents a where a.id = kill.target));
  select * into killer from agentmesh.agents a where a.id = kill.killed_by;
  select * into victim from agentmesh.agents a where a.id = kill.target;
  dying := array(select a.id from agentmesh.agents a where a.id = any (tree) and a.status <> 'dead');
  if (kill.caller).worker_id is not null then
    perform agentmesh.fence(killer, kill.caller);
    perform agentmesh.require_open_call(kill.killed_by, kill.caller);
  end if;
  perform agentmesh.require_agent(victim, kill.target);
  if kill.killed_by is not null then
    perform agentmesh.require_living(killer, kill.killed_by);
    if killer.session_id <> victim.session_id then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(victim)), 'Agents reach only their own session.');
    end if;
  end if;
  if victim.parent_id is null then
    perform agentmesh.refuse('AM040', 'the root cannot be killed', 'A person can end the session: agentmesh sessions end ' || left(session::text, 8));
  end if;
  if kill.killed_by is not null then
    if kill.killed_by = kill.target or not exists (
        with recursive above (id) as (
          select victim.parent_id
          union all
          select a.parent_id from above join agentmesh.agents a on a.id = above.id where a.parent_id is not null)
        select from above where above.id = kill.killed_by) then
      perform agentmesh.refuse('AM041', format('%s is not a descendant of %s', agentmesh.label(victim), agentmesh.label(killer)),
        'An agent can kill only its children and their children. Ask its parent, or end your turn.');
    end if;
  end if;
  if victim.status = 'dead' then
    dying := '{}';
  else
    perform agentmesh.bury(dying, session, kill.killed_by);
  end if;
  return query select a.id, a.name from agentmesh.agents a where a.id = any (dying) order by a.depth, a.created_at, a.id;
  if (kill.caller).worker_id is not null then
    perform agentmesh.close_call(kill.killed_by, kill.caller, jsonb_build_object('killed', coalesce((
      select jsonb_agg(jsonb_build_object('agent_id', a.id, 'name', a.name) order by a.depth, a.created_at, a.id)
      from agentmesh.agents a where a.id = any (dying)), '[]')));
    perform pg_notify('session_event_' || session, 'step ' || kill.killed_by);
  end if;
end $$;

-- reap: hide the dead of a session (or one of them) from rotation; never touches the living. Returns how many.
create function agentmesh.reap(session uuid, agent uuid default null) returns integer
language plpgsql as $$
#variable_conflict use_column
declare
  hidden integer;
  one agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  if (agentmesh.lock_session(reap.session)).id is null then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(reap.session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
  if reap.agent is not null then
    select * into one from agentmesh.lock_agents(array[reap.agent]);
    if one.session_id is distinct from reap.session then
      perform agentmesh.require_agent(null, reap.agent);
    elsif one.status <> 'dead' then
      perform agentmesh.refuse('AM053', format('%s is alive', agentmesh.label(one)), 'Kill it first: only the dead are reaped.');
    end if;
  end if;
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a
    where a.session_id = reap.session and a.status = 'dead' and a.reaped_at is null and (reap.agent is null or a.id = reap.agent)));
  update agentmesh.agents a set reaped_at = clock_timestamp()
  where a.session_id = reap.session and a.status = 'dead' and a.reaped_at is null and (reap.agent is null or a.id = reap.agent);
  get diagnostics hidden = row_count;
  perform pg_notify('session_event_' || reap.session, 'reaped');
  return hidden;
end $$;
