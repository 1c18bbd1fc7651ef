-- One or two agents are locked by one or two statements, in the order of their ids. A loop over a query opens a cursor, and a function that returns
-- rows keeps them: for two rows that took longer than to lock them. A message among many in one statement takes a fifth to a quarter less of the server's
-- processor, the begin of a wait for anyone an eighth, the end of a turn 0.02 ms.

-- Lock an agent and its parent, by id.
create or replace function agentmesh.lock_with_parent(agent uuid, out me agentmesh.agents, out parent agentmesh.agents)
language plpgsql as $$
declare
  above uuid := (select a.parent_id from agentmesh.agents a where a.id = agent);
begin
  if above < agent then
    select * into parent from agentmesh.agents a where a.id = above for no key update;
  end if;
  select * into me from agentmesh.agents a where a.id = agent for no key update;
  if above > agent then
    select * into parent from agentmesh.agents a where a.id = above for no key update;
  end if;
end $$;

-- send: put one message into the recipient's mailbox; durable when it returns. sender null is the user.
-- The same key again, for the same sender and recipient, returns the same id.
create or replace function agentmesh.send(sender uuid, recipient uuid, body text, key text default null, caller agentmesh.caller default null)
returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
  fine boolean := agentmesh.require_read_committed();
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
  if send.sender < send.recipient then
    select * into from_agent from agentmesh.agents a where a.id = send.sender for no key update;
  end if;
  select * into to_agent from agentmesh.agents a where a.id = send.recipient for no key update;
  if send.sender > send.recipient then
    select * into from_agent from agentmesh.agents a where a.id = send.sender for no key update;
  end if;
  if (send.caller).worker_id is not null then
    fine := agentmesh.fence(from_agent, send.caller) and agentmesh.require_open_call(send.sender, send.caller);
  end if;
  if to_agent.id is null then
    fine := agentmesh.require_agent(to_agent, send.recipient);
  elsif send.sender is not null then
    if from_agent.id is null then
      fine := agentmesh.require_agent(from_agent, send.sender);
    elsif from_agent.session_id <> to_agent.session_id then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(to_agent)), 'Agents reach only their own session.');
    end if;
  end if;
  if send.key is not null then
    if octet_length(send.key) not between 1 and 200 then
      perform agentmesh.refuse('AM004', format('the key is %s bytes long, not 1 to 200', octet_length(send.key)), 'Take a shorter one, a UUID for example.');
    end if;
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
  fine := agentmesh.require_body(send.body);
  if from_agent.status = 'dead' or to_agent.status = 'dead' then
    fine := (send.sender is null or agentmesh.require_living(from_agent, send.sender)) and agentmesh.require_living(to_agent, send.recipient);
  end if;
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

-- wait, its first half: return the result if the wait is complete at once (or timeout is 0), else register it and
-- return null. targets is [{"agent_id": as asked, "id": resolved}, {"agent_id", "error", "hint"}, ...] in the order asked,
-- or null for anyone. Without a caller it is a person's wait on an idle agent, or that of an external agent that nobody has joined as.
create or replace function agentmesh.wait_begin(waiter uuid, targets jsonb, timeout double precision, caller agentmesh.caller default null) returns jsonb
language plpgsql as $$
#variable_conflict use_column
declare
  ids uuid[] := array(select distinct (t ->> 'id')::uuid from jsonb_array_elements(wait_begin.targets) t where t ->> 'id' is not null);
  session agentmesh.sessions;
  me agentmesh.agents;
  held agentmesh.wait;
  result jsonb;
  circle text;
begin
  perform agentmesh.require_read_committed();
  if timeout is null or timeout = 'NaN' or timeout < 0 or timeout > 86400 then
    perform agentmesh.refuse('AM050', format('timeout %s is not between 0 and 86400 seconds', coalesce(timeout::text, 'null')), 'Give seconds; 0 looks and returns at once.');
  elsif jsonb_array_length(targets) = 0 then
    perform agentmesh.refuse('AM050', 'from_agents is empty', 'List agents, or leave it out to wait for a message from anyone.');
  end if;
  -- A wait that is over at once needs no circle check, so no session lock. This peek may be wrong by the time the
  -- waiter is locked; then the call is repeated (40001).
  if targets is not null and timeout > 0 and not (agentmesh.wait_look(wait_begin.waiter, targets)).met then
    session := agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = wait_begin.waiter));
  end if;
  if session.id is not null then
    perform agentmesh.lock_agents(ids || wait_begin.waiter);
  end if;
  select * into me from agentmesh.agents a where a.id = wait_begin.waiter for no key update;
  if caller.worker_id is not null then
    perform agentmesh.fence(me, caller);
  else
    perform agentmesh.require_living(me, wait_begin.waiter);
  end if;
  select * into held from agentmesh.wait w where w.waiter = me.id;
  if held.waiter is not null then
    if held.seq = caller.seq and held.ordinal = caller.ordinal then
      return null;
    end if;
    perform agentmesh.refuse('AM051', format('%s is already inside a wait', agentmesh.label(me)), 'Only one wait at a time: let it end, or interrupt it.');
  elsif caller.worker_id is null and (me.worker_id is not null or not me.external and me.status <> 'idle') then
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Let its turn end, or interrupt it, then wait.');
  end if;
  if caller.seq is not null then
    perform agentmesh.require_open_call(me.id, caller);
  end if;
  if exists (select from agentmesh.agents a where a.id = any (ids) and a.session_id <> me.session_id) then
    perform agentmesh.refuse('AM012', 'from_agents names an agent of another session', 'Agents reach only their own session.');
  end if;
  result := agentmesh.take(me, targets, case when timeout = 0 then 'timeout' end, caller);
  if result is not null then
    return result;
  end if;
  if targets is not null then
    if session.id is null then
      perform agentmesh.refuse('40001', 'the awaited agents changed while the wait began', 'Call again.');
    end if;
    circle := agentmesh.wait_circle(me, ids);
    if circle is not null then
      perform agentmesh.refuse('AM052', 'this wait would close a circle: ' || circle, 'Send a message instead, or wait for another agent: nobody in a circle can go on.');
    end if;
  end if;
  insert into agentmesh.wait (waiter, seq, ordinal, targets, deadline)
  values (me.id, caller.seq, caller.ordinal, targets, clock_timestamp() + make_interval(secs => timeout));
  insert into agentmesh.waits (waiter, target) select me.id, t from unnest(ids) t;
  if caller.worker_id is null and not me.external then
    update agentmesh.agents a set status = 'running', turn = a.turn + 1, started_turn = a.turn + 1, queued_at = clock_timestamp() where a.id = me.id;
    perform agentmesh.notify_work(me.session_id);
  end if;
  perform pg_notify('session_event_' || me.session_id, 'wait ' || me.id);
  return null;
end $$;
