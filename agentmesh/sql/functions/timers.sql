create function agentmesh.send_later(sender uuid, recipient uuid, body text, at timestamptz default null, after double precision default null,
  every double precision default null, caller agentmesh.caller default null, cron text default null, key text default null,
  images jsonb default null) returns bigint
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- Locks the session too, so that two senders cannot both take the last place, nor both use a new key.
declare
  session uuid := (select a.session_id from agentmesh.agents a where a.id = send_later.recipient);
  from_agent agentmesh.agents;
  to_agent agentmesh.agents;
  asked agentmesh.timers;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session(session);
  perform agentmesh.lock_agents(array[send_later.sender, send_later.recipient]);
  select * into from_agent from agentmesh.agents a where a.id = send_later.sender;
  select * into to_agent from agentmesh.agents a where a.id = send_later.recipient;
  if (send_later.caller).worker_id is not null then
    perform agentmesh.fence(from_agent, send_later.caller);
    perform agentmesh.require_open_call(send_later.sender, send_later.caller);
  end if;
  perform agentmesh.require_agent(from_agent, send_later.sender) where send_later.sender is not null;
  perform agentmesh.require_agent(to_agent, send_later.recipient);
  if from_agent.session_id <> to_agent.session_id then
    perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(to_agent)), 'Agents reach only their own session.');
  end if;
  asked.session_id := session;
  asked.sender := send_later.sender;
  asked.recipient := send_later.recipient;
  asked.body := send_later.body;
  asked.every_seconds := send_later.every;
  asked.cron := send_later.cron;
  asked.first_at := case when send_later.cron is null then send_later.at end;
  asked.key := send_later.key;
  asked.images := send_later.images;
  if asked.key is not null then
    asked := agentmesh.timer_of_key(asked);
  end if;
  if asked.id is null then
    perform agentmesh.require_living(from_agent, send_later.sender) where send_later.sender is not null;
    perform agentmesh.require_living(to_agent, send_later.recipient);
    asked.due_at := agentmesh.due_time(send_later.at, send_later.after, send_later.every, send_later.cron);
    asked := agentmesh.add_timer(asked);
  end if;
  if (send_later.caller).worker_id is not null then
    perform agentmesh.close_scheduled(asked, to_agent, send_later.caller);
  end if;
  return asked.id;
end $$;

comment on function agentmesh.send_later is
  'Send a message when it is due: at a time, or after so many seconds, and then every so many seconds if that is given. Or cron repeats it: a cron expression of five fields and a time zone, and at is its first time, because a worker computes only the further ones. Returns the timer''s id. sender null is the user; an agent may send to itself: an alarm. A repeated key, for the same sender and recipient, returns the same id; it is refused if that timer was cancelled. It says nothing about messages that are sent at once. images are references to images of the session (keep_image), null if there are none. The timer ends with its recipient and with its sender.';

create function agentmesh.timer_of_key(asked agentmesh.timers) returns agentmesh.timers
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- The first time counts only if it was given as a time: a span begins again with each call.
declare
  known agentmesh.timers;
begin
  perform agentmesh.require_key(asked.key);
  select * into known from agentmesh.timers t
  where t.recipient = asked.recipient and t.sender is not distinct from asked.sender and t.key = asked.key;
  if known.id is null then
    return asked;
  elsif (known.body, known.images, known.every_seconds, known.cron, known.first_at)
        is distinct from (asked.body, asked.images, asked.every_seconds, asked.cron, asked.first_at) then
    perform agentmesh.refuse_key(asked.key);
  elsif known.ended_as = 'cancelled' then
    perform agentmesh.refuse('AM023', format('the message with the key %s was cancelled', quote_literal(left(asked.key, 60))),
      'Take a new key to send it after all.');
  elsif known.ended_as = 'dead' then
    return asked;  -- as a new one it is refused, because its sender or recipient is dead
  end if;
  return known;
end $$;

comment on function agentmesh.timer_of_key is
  'Return the timer that was set earlier under this one''s key, or this one, without id, if there is none. Refuse a key that another message has, or one that was cancelled.';

create function agentmesh.add_timer(asked agentmesh.timers) returns agentmesh.timers
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- The caller holds the session's row.
begin
  perform agentmesh.require_body(asked.body);
  perform agentmesh.require_images(asked.session_id, asked.images) where asked.images is not null;
  if (select count(*) from agentmesh.timers t where t.session_id = asked.session_id and t.ended_at is null) >= 100 then
    perform agentmesh.refuse('AM097', 'the session has 100 timers already', 'Cancel one, or wait for one: agentmesh timers lists them.');
  end if;
  insert into agentmesh.timers (session_id, sender, recipient, body, every_seconds, due_at, cron, first_at, key, images)
  values (asked.session_id, asked.sender, asked.recipient, asked.body, asked.every_seconds, asked.due_at, asked.cron, asked.first_at, asked.key, asked.images)
  returning * into asked;
  return asked;
end $$;

comment on function agentmesh.add_timer is 'Store a new timer, if its message can be sent and the session may have one more.';

create function agentmesh.close_scheduled(timer agentmesh.timers, recipient agentmesh.agents, caller agentmesh.caller) returns void
language plpgsql as $$
begin
  perform agentmesh.close_call(timer.sender, close_scheduled.caller, jsonb_build_object('status', 'scheduled',
    'to', jsonb_build_object('agent_id', recipient.id, 'name', recipient.name), 'timer_id', timer.id, 'due_at', timer.due_at)
    || case when timer.cron is not null then jsonb_build_object('cron', timer.cron) else '{}' end);
  perform pg_notify('session_event_' || timer.session_id, 'step ' || timer.sender);
end $$;

comment on function agentmesh.close_scheduled is 'Write the result of a send tool''s call whose message is due later.';

create function agentmesh.due_time(at timestamptz, after double precision, every double precision, cron text) returns timestamptz
language plpgsql as $$
declare
  now constant timestamptz := clock_timestamp();
  first double precision := coalesce(due_time.after, due_time.every);
begin
  if due_time.cron is not null and (due_time.at is null or first is not null or octet_length(due_time.cron) not between 1 and 200) then
    perform agentmesh.refuse('AM004', 'a cron expression has 200 bytes at most, comes with its first time, and without after and every',
      'Give the first time as at, or let agentmesh send --cron compute it.');
  elsif due_time.every is not null and not due_time.every between 60 and 31622400 then
    perform agentmesh.refuse('AM004', 'a message is repeated every 60 s to 366 days', 'Give the seconds between two of them.');
  elsif due_time.at is not null and due_time.after is not null or due_time.at is null and first is null
        or not first between 0 and 31622400 or due_time.at < now and due_time.cron is null or due_time.at > now + interval '366 days' then
    perform agentmesh.refuse('AM004', 'a later message is due at one time, from now to 366 days from now',
      'Give a time with its time zone, or the seconds until then.');
  end if;
  return case when due_time.at is null then now + make_interval(secs => first) else greatest(due_time.at, now) end;
end $$;

comment on function agentmesh.due_time is
  'Return when a message is due first; refuse times that are over or too far away. The first time of a cron expression may have passed since it was computed.';

create function agentmesh.ring_timers(most integer default 20) returns integer
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- It waits for no lock: rows that another transaction holds are left for the next tick, and others take their place in
-- this one. Agents come first, so that a timer whose recipient is being killed is not looked at; then each timer is
-- looked at again under its own lock.
declare
  now constant timestamptz := clock_timestamp();  -- a constant: an index is not searched for a clock that goes on
  one agentmesh.agents;
  due agentmesh.timers;
  rung integer := 0;
begin
  perform agentmesh.require_read_committed();
  for one in
    select a.* from (select t.recipient, min(t.due_at) as due_at from agentmesh.timers t where t.ended_at is null and t.cron is null and t.due_at <= now
                     group by t.recipient) d
    join agentmesh.agents a on a.id = d.recipient and a.status <> 'dead' order by d.due_at limit ring_timers.most for no key update of a skip locked
  loop
    for due in
      select * from agentmesh.timers t where t.recipient = one.id and t.ended_at is null and t.cron is null and t.due_at <= now
      order by t.due_at, t.id limit ring_timers.most for no key update skip locked
    loop
      rung := rung + agentmesh.ring(due, one.id);
    end loop;
  end loop;
  return rung;
end $$;

comment on function agentmesh.ring_timers is
  'Turn timers that are due into mail, which wakes its recipients in the same commit; not those of cron expressions (ring_cron). Returns how many.';

create function agentmesh.ring_cron(timer bigint, due_at timestamptz, next_at timestamptz) returns integer
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- Only a worker can read a cron expression. Meanwhile another one may have rung the timer: then it is due at another
-- time. It waits for no lock, as ring_timers.
declare
  recipient uuid := (select t.recipient from agentmesh.timers t where t.id = ring_cron.timer);
  due agentmesh.timers;
begin
  perform agentmesh.require_read_committed();
  perform from agentmesh.agents a where a.id = recipient and a.status <> 'dead' for no key update skip locked;
  if not found then
    return 0;
  end if;
  select * into due from agentmesh.timers t
  where t.id = ring_cron.timer and t.ended_at is null and t.due_at = ring_cron.due_at and t.due_at <= clock_timestamp()
  for no key update skip locked;
  if not found then
    return 0;
  end if;
  return agentmesh.ring(due, recipient, ring_cron.next_at);
end $$;

comment on function agentmesh.ring_cron is
  'Turn a timer of a cron expression into mail, if it is still due at due_at; next_at is its next time, null if there is none. Returns the mails.';

create function agentmesh.ring(timer agentmesh.timers, recipient uuid, next_at timestamptz default null) returns integer
language plpgsql as $$
-- Times that were missed become one message. A time is never earlier than the one before, also if the clock was set back.
declare
  one agentmesh.agents;
  late double precision := extract(epoch from clock_timestamp() - timer.due_at);
  again_at constant timestamptz := coalesce(ring.next_at,
    timer.due_at + make_interval(secs => timer.every_seconds * (floor(late / timer.every_seconds) + 1)));
  new_id bigint;
begin
  select * into one from agentmesh.agents a where a.id = ring.recipient;  -- as the timer before this one left it
  if agentmesh.is_mailbox_full(one, timer.sender) then
    update agentmesh.timers t set due_at = clock_timestamp() + interval '60 s', held_up = true where t.id = timer.id;
    return 0;
  end if;
  new_id := agentmesh.deliver(one, timer.sender, timer.body, images => timer.images,
    about => case when timer.sender = timer.recipient then 'alarm' end);
  update agentmesh.timers t set rung = t.rung + 1, mail_id = new_id, held_up = false, due_at = coalesce(again_at, t.due_at),
    ended_at = case when again_at is null then clock_timestamp() end, ended_as = case when again_at is null then 'rung' end
  where t.id = timer.id;
  return 1;
end $$;

comment on function agentmesh.ring is
  'Turn one due, locked timer into mail for its locked recipient, or put it off for a minute if the mailbox is full; returns the mails. next_at is when a cron expression is due next.';

create function agentmesh.is_mailbox_full(recipient agentmesh.agents, sender uuid) returns boolean
language plpgsql as $$
begin
  perform agentmesh.require_room_in_mailbox(recipient, is_mailbox_full.sender);
  return false;
exception
  when sqlstate 'AM022' then
    return true;
end $$;

comment on function agentmesh.is_mailbox_full is 'Whether a locked agent takes no mail from this sender now.';

create function agentmesh.cancel_timer(timer bigint, session uuid) returns boolean
language plpgsql as $$
begin
  update agentmesh.timers t set ended_at = clock_timestamp(), ended_as = 'cancelled'
  where t.id = cancel_timer.timer and t.session_id = cancel_timer.session and t.ended_at is null;
  if found then
    return true;
  elsif not exists (select from agentmesh.timers t where t.id = cancel_timer.timer and t.session_id = cancel_timer.session) then
    perform agentmesh.refuse('AM098', format('there is no timer %s', coalesce(cancel_timer.timer::text, 'null')), 'agentmesh timers lists them.');
  end if;
  return false;
end $$;

comment on function agentmesh.cancel_timer is 'End a timer of a session before it rings (again); returns false if it has ended already.';

create function agentmesh.end_timers(ids uuid[], session uuid) returns void
language sql set jit = off set enable_seqscan = off as $$
  update agentmesh.timers t set ended_at = clock_timestamp(), ended_as = 'dead'
  where t.session_id = end_timers.session and t.ended_at is null and (t.recipient = any (ids) or t.sender = any (ids))
$$;

comment on function agentmesh.end_timers is 'End the timers to and from these agents, which die now.';
