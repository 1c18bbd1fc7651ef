create function agentmesh.send(sender uuid, recipient uuid, body text, key text default null, caller agentmesh.caller default null,
  images jsonb default null, urgent boolean default false, reply_to bigint default null)
returns bigint
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  from_agent agentmesh.agents;
  to_agent agentmesh.agents;
  mail_id bigint;
begin
  perform agentmesh.require_read_committed();
  send.recipient := coalesce(send.recipient, agentmesh.addressee(send.sender, send.reply_to));
  if send.sender = send.recipient then
    perform agentmesh.refuse('AM013', 'an agent cannot send to itself at once', 'Send to another agent, or give a time (after, at, every, cron): that is an alarm.');
  end if;
  if send.sender < send.recipient then
    select * into from_agent from agentmesh.agents a where a.id = send.sender for no key update;
  end if;
  select * into to_agent from agentmesh.agents a where a.id = send.recipient for no key update;
  if send.sender > send.recipient then
    select * into from_agent from agentmesh.agents a where a.id = send.sender for no key update;
  end if;
  if (send.caller).worker_id is not null then
    perform agentmesh.fence(from_agent, send.caller);
    perform agentmesh.require_open_call(send.sender, send.caller);
  end if;
  if to_agent.id is null then
    perform agentmesh.require_agent(to_agent, send.recipient);
  elsif send.sender is not null then
    if from_agent.id is null then
      perform agentmesh.require_agent(from_agent, send.sender);
    elsif from_agent.session_id <> to_agent.session_id then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(to_agent)), 'Agents reach only their own session.');
    end if;
  end if;
  if send.key is not null then
    mail_id := agentmesh.mail_of_key(send.sender, send.recipient, send.key, send.body, send.images);
  end if;
  if mail_id is null then
    perform agentmesh.require_body(send.body);
    if send.images is not null then perform agentmesh.require_images(to_agent.session_id, send.images); end if;
    if from_agent.status = 'dead' or to_agent.status = 'dead' then
      perform agentmesh.require_living(from_agent, send.sender) where send.sender is not null;
      perform agentmesh.require_living(to_agent, send.recipient);
    end if;
    if send.reply_to is not null then perform agentmesh.require_answerable(send.sender, to_agent.session_id, send.reply_to); end if;
    perform agentmesh.require_room_in_mailbox(to_agent, send.sender);
    mail_id := agentmesh.deliver(to_agent, send.sender, send.body, send.key, images => send.images, urgent => coalesce(send.urgent, false), reply_to => send.reply_to);
    if from_agent.owes_report then
      -- A message is no report of a fixed form.
      update agentmesh.agents a set owes_report = exists (select from agentmesh.forms f where f.agent_id = a.id) where a.id = send.sender;
    end if;
  end if;
  if (send.caller).worker_id is not null then
    perform agentmesh.close_sent(from_agent, to_agent, mail_id, send.caller);
  end if;
  return mail_id;
end $$;

comment on function agentmesh.send is
  'Put one message into the recipient''s mailbox; durable when it returns. sender null is the user. A repeated key, for the same sender and recipient, returns the same id. images are references to images of the session (keep_image), null if there are none. Urgent mail is read at the recipient''s next step, and calls that it has not started by then are not run. reply_to is a mail that this one answers: one that the sender has sent or received, or for the user any of the session. Without a recipient it goes to the sender of that mail; to its recipient, if the sender of both is the same.';

create function agentmesh.addressee(sender uuid, reply_to bigint) returns uuid
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  answered agentmesh.mail;
begin
  if addressee.reply_to is null then
    perform agentmesh.require_agent(null, null);
  end if;
  select * into answered from agentmesh.mail m where m.id = addressee.reply_to;
  perform agentmesh.require_answerable(addressee.sender, answered.session_id, addressee.reply_to);
  if answered.sender is not distinct from addressee.sender then
    return answered.recipient;
  elsif answered.sender is null then
    perform agentmesh.refuse('AM045', format('message %s is from no agent', answered.id),
      'Answer the user in your own text, or say to which agent this message goes.');
  end if;
  return answered.sender;
end $$;

comment on function agentmesh.addressee is 'Return the recipient of a message that names none and answers another message.';

create function agentmesh.require_answerable(sender uuid, session uuid, reply_to bigint) returns void
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
begin
  if not exists (
      select from agentmesh.mail m where m.id = require_answerable.reply_to and m.session_id = require_answerable.session
        and (require_answerable.sender is null or require_answerable.sender in (m.sender, m.recipient))) then
    perform agentmesh.refuse('AM045', format('there is no message %s %s', require_answerable.reply_to, case when require_answerable.sender is null
        then 'in this session' else 'that ' || coalesce((select agentmesh.label(a) from agentmesh.agents a where a.id = require_answerable.sender), 'it') || ' has sent or received' end),
      case when require_answerable.sender is null then 'Take the number of one of its messages: agentmesh log --full shows them.'
        else 'Take the message_id of one that was sent or received, or send an ordinary message.' end);
  end if;
end $$;

comment on function agentmesh.require_answerable is
  'Refuse an answer to a message that its sender has not sent or received. The user (null) may answer any message of the session.';

create function agentmesh.answering(reply_to bigint) returns jsonb
language sql stable set jit = off set enable_seqscan = off as $$
  select coalesce((select jsonb_build_object('reply_to', jsonb_build_object('message_id', m.id, 'begins', left(m.body, 80)))
    from agentmesh.mail m where m.id = answering.reply_to), '{}')
$$;

comment on function agentmesh.answering is 'What the recipient of an answer is told about the message that it answers: its id, and how it begins.';

create function agentmesh.mail_of_key(sender uuid, recipient uuid, key text, body text, images jsonb) returns bigint
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- The recipient's row is locked, so nobody else delivers under the same key meanwhile.
declare
  known record;
begin
  perform agentmesh.require_key(mail_of_key.key);
  select m.id, m.body, m.images, m.withdrawn_at into known from agentmesh.mail m
  where m.recipient = mail_of_key.recipient and m.sender is not distinct from mail_of_key.sender and m.key = mail_of_key.key;
  if known.id is not null and (known.body, known.images) is distinct from (mail_of_key.body, mail_of_key.images) then
    perform agentmesh.refuse_key(mail_of_key.key);
  elsif known.withdrawn_at is not null then
    perform agentmesh.refuse('AM023', format('the message with the key %s was taken back', quote_literal(left(mail_of_key.key, 60))),
      'Take a new key to send it after all.');
  end if;
  return known.id;
end $$;

comment on function agentmesh.mail_of_key is
  'Return the mail that was sent earlier under a key, null if there is none; refuse a key that another message has, or one that was taken back.';

create function agentmesh.require_key(key text) returns void
language plpgsql as $$
begin
  if octet_length(require_key.key) not between 1 and 200 then
    perform agentmesh.refuse('AM004', format('the key is %s bytes long, not 1 to 200', octet_length(require_key.key)),
      'Take a shorter one, a UUID for example.');
  end if;
end $$;

comment on function agentmesh.require_key is 'Refuse a key that is empty or too long.';

create function agentmesh.refuse_key(key text) returns void
language plpgsql as $$
begin
  perform agentmesh.refuse('AM023', format('the key %s was already used for another message', quote_literal(left(refuse_key.key, 60))),
    'Take a new key for a new message.');
end $$;

comment on function agentmesh.refuse_key is 'Refuse a key under which another message was sent.';

create function agentmesh.require_room_in_mailbox(recipient agentmesh.agents, sender uuid) returns void
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- Mail from an agent that the recipient is waiting for does not count: the wait is about to take it.
-- An idle recipient with a full mailbox was woken too often by agents only. The user's word wakes it, and then it reads.
declare
  unread integer;
  most integer;
  is_held constant boolean := recipient.status = 'idle' and not recipient.external;
begin
  if is_held and require_room_in_mailbox.sender is null then
    return;
  end if;
  select s.max_unread, (select count(*) from (
      select from agentmesh.mail m where m.recipient = recipient.id and m.read_at is null and m.withdrawn_at is null limit s.max_unread) u)
  into most, unread from agentmesh.sessions s where s.id = recipient.session_id;
  if unread >= most then
    if not exists (select from agentmesh.waits w where w.waiter = recipient.id and w.target = require_room_in_mailbox.sender) then
      perform agentmesh.refuse('AM022', format('the mailbox of %s is full: %s unread messages', agentmesh.label(recipient), unread),
        case when is_held then 'It stays idle until a person writes to it: tell the user.'
          else 'Do not retry at once: it has to read first. Kill it, or wait for it.' end);
    end if;
  end if;
end $$;

comment on function agentmesh.require_room_in_mailbox is 'Refuse mail to a locked agent whose mailbox is full.';

create function agentmesh.close_sent(sender agentmesh.agents, recipient agentmesh.agents, mail_id bigint, caller agentmesh.caller) returns void
language plpgsql as $$
begin
  -- No NOTIFY: the sender's worker tells screens of its rows.
  perform agentmesh.close_call(sender.id, caller, jsonb_build_object('status', 'sent',
    'to', jsonb_build_object('agent_id', recipient.id, 'name', recipient.name), 'message_id', mail_id));
end $$;

comment on function agentmesh.close_sent is 'Write the result of a send tool''s call.';

create function agentmesh.deliver(recipient agentmesh.agents, sender uuid, body text, key text default null,
  automatic boolean default false, failed boolean default false, images jsonb default null,
  urgent boolean default false, about text default null, reply_to bigint default null) returns bigint
language plpgsql as $$
declare
  new_id bigint;
  from_agent agentmesh.agents;
  is_held boolean := false;
begin
  if deliver.automatic then
    select * into from_agent from agentmesh.agents a where a.id = deliver.sender;
    about := case when agentmesh.is_halted(from_agent) then 'halt' else about end;
    if agentmesh.was_stopped(from_agent) and agentmesh.was_stopped(recipient) then
      is_held := (agentmesh.unread_at_end(recipient)).waking is null;  -- otherwise the next turn begins anyway, and reads it
    end if;
  end if;
  insert into agentmesh.mail (session_id, sender, recipient, body, key, automatic, failed, images, urgent, about, reply_to)
  values (recipient.session_id, deliver.sender, recipient.id, deliver.body, deliver.key, deliver.automatic, deliver.failed, deliver.images, deliver.urgent, deliver.about, deliver.reply_to)
  returning id into new_id;
  if is_held then
    update agentmesh.agents a set held_mail = new_id where a.id = recipient.id;
  elsif deliver.about = 'halt' and recipient.status = 'idle' and not recipient.external then
    perform agentmesh.read_mail(recipient, array[new_id]);
  elsif recipient.status = 'idle' then
    perform agentmesh.wake(recipient, new_id, deliver.sender is null and deliver.about is distinct from 'process');
  elsif recipient.worker_id is null and not recipient.external then
    perform agentmesh.notify_work(recipient.session_id);
  end if;
  perform agentmesh.notify_of_mail(recipient, new_id, deliver.sender, deliver.automatic);
  return new_id;
end $$;

comment on function agentmesh.deliver is 'Store one mail for the locked recipient, wake it, and tell those that must look now. The report of an agent whose work was halted wakes nobody. That of an agent that a person stopped does not wake a recipient that a person stopped as well: it is held, like mail that was unread at the interrupt.';

create function agentmesh.notify_of_mail(recipient agentmesh.agents, mail_id bigint, sender uuid, automatic boolean) returns void
language plpgsql as $$
-- Commits that notify queue up on one lock of the server, which they hold across the flush of their log. So mail rings
-- only if something changes. It rings the agent if it can end the agent's wait. If it wakes the agent or is the only
-- unread mail, it rings for screens, and for programs that listen for an agent that no worker runs. A worker's agent
-- that is not inside a wait looks by itself, at its next step.
declare
  is_news constant boolean := recipient.status = 'idle' or not exists (
    select from agentmesh.mail m where m.recipient = recipient.id and m.id <> mail_id and m.read_at is null and m.withdrawn_at is null);
begin
  if is_news then
    perform pg_notify('session_event_' || recipient.session_id, 'mail ' || recipient.id);
  end if;
  if is_news and (recipient.external or recipient.worker_id is null)
     or agentmesh.can_end_wait(recipient.id, mail_id, notify_of_mail.sender, notify_of_mail.automatic) then
    perform pg_notify('agent_event_' || recipient.id, 'mail');
  end if;
end $$;

comment on function agentmesh.notify_of_mail is 'Tell a waiting agent, and screens, of mail that a locked agent has just got, if nobody has told them of such mail yet.';

create function agentmesh.can_end_wait(recipient uuid, mail_id bigint, sender uuid, automatic boolean) returns boolean
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- The recipient is locked, so its wait neither begins nor ends meanwhile, and none of its mail is read. When its wait
-- began there was no mail that could end it. The first such mail rings; those after it find it unread, and are silent:
-- the look that it rings for finds them too. A report does not end a wait for a running agent; the end of its turn does.
declare
  held agentmesh.wait;
begin
  select * into held from agentmesh.wait w where w.waiter = can_end_wait.recipient;
  if held.waiter is null then
    return false;
  elsif held.targets is null or can_end_wait.sender is null then
    return not exists (
      select from agentmesh.mail m where m.recipient = can_end_wait.recipient and m.id <> can_end_wait.mail_id
        and m.read_at is null and m.withdrawn_at is null and m.about is distinct from 'merge'
        and (m.sender is null or held.targets is null and can_end_wait.sender is not null));
  elsif can_end_wait.automatic or not exists (
      select from agentmesh.waits w where w.waiter = can_end_wait.recipient and w.target = can_end_wait.sender) then
    return false;
  end if;
  return not exists (
    select from agentmesh.mail m where m.recipient = can_end_wait.recipient and m.sender = can_end_wait.sender and m.id <> can_end_wait.mail_id
      and not m.automatic and m.read_at is null and m.withdrawn_at is null);
end $$;

comment on function agentmesh.can_end_wait is
  'Whether this mail is the first that can end the wait of a locked agent, or a part of it.';

create function agentmesh.fitting(body text) returns text
language sql immutable as $$
  select case when octet_length(body) <= 262144 then body else left(body, 30000) || E'\n[... cut ...]\n' || right(body, 30000) end
$$;

comment on function agentmesh.fitting is 'A text that fits into a mail: if it is too long, its beginning and its end.';

create function agentmesh.wake(agent agentmesh.agents, mail_id bigint, by_user boolean) returns void
language plpgsql as $$
begin
  if agent.status <> 'idle' or agent.external then
    return;
  elsif not by_user and agent.agent_wakes >= 25 then
    if agent.held_mail < coalesce((select min(m.id) from agentmesh.mail m where m.recipient = agent.id and m.read_at is null and m.withdrawn_at is null), 0) then
      perform agentmesh.hold(agent, mail_id);
    else
      update agentmesh.agents a set held_mail = mail_id where a.id = agent.id;
    end if;
    perform agentmesh.notify_agent(agent.id, agent.session_id, 'held');
  else
    update agentmesh.agents a set status = 'running', turn = a.turn + 1, queued_at = clock_timestamp(),
      agent_wakes = case when by_user then 0 else a.agent_wakes + 1 end
    where a.id = agent.id;
    perform agentmesh.notify_work(agent.session_id);
  end if;
end $$;

comment on function agentmesh.wake is
  'Wake the locked agent if it is idle and this mail may wake it. After 25 wake-ups in a row by agents, in which it did nothing but send, no agent can wake it: otherwise two agents could thank each other for ever.';

create function agentmesh.hold(agent agentmesh.agents, mail_id bigint) returns void
language plpgsql as $$
begin
  perform agentmesh.append(agent.id, 'event', jsonb_build_object('event', 'held',
    'text', 'woken 25 times in a row by agents only: it stays idle, its mail unread, until a person writes to it'));
  update agentmesh.agents a set held_mail = mail_id where a.id = agent.id;
end $$;

comment on function agentmesh.hold is 'Let mail up to this one wake the locked agent no more, and say so in a row.';

create function agentmesh.take_back(mail bigint) returns text
language plpgsql as $$
#variable_conflict use_column
declare
  found_mail agentmesh.mail;
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.lock_agents(array[(select m.recipient from agentmesh.mail m where m.id = take_back.mail)]);
  select * into found_mail from agentmesh.mail m where m.id = take_back.mail and m.sender is null and not m.automatic;
  if found_mail.id is null then
    perform agentmesh.refuse('AM024', format('there is no message %s of the user', coalesce(take_back.mail::text, 'null')), 'Only your own messages can be taken back.');
  elsif found_mail.withdrawn_at is not null then
    perform agentmesh.refuse('AM024', format('message %s was taken back already', found_mail.id), format('%s never reads it.', agentmesh.label(me)));
  elsif found_mail.read_at is not null then
    perform agentmesh.refuse('AM024', format('%s has read the message already', agentmesh.label(me)), 'Interrupt it, or write what you want instead.');
  end if;
  update agentmesh.mail m set withdrawn_at = clock_timestamp() where m.id = take_back.mail;
  perform pg_notify('session_event_' || me.session_id, 'mail ' || me.id);
  return found_mail.body;
end $$;

comment on function agentmesh.take_back is 'Withdraw a message of the user that its recipient has not read; returns its text.';
