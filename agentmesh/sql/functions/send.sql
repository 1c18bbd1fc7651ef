create function agentmesh.send(sender uuid, recipient uuid, body text, key text default null, caller agentmesh.caller default null,
  images jsonb default null)
returns bigint
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  from_agent agentmesh.agents;
  to_agent agentmesh.agents;
  mail_id bigint;
begin
  perform agentmesh.require_read_committed();
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
    perform agentmesh.require_images(to_agent.session_id, send.images) where send.images is not null;
    if from_agent.status = 'dead' or to_agent.status = 'dead' then
      perform agentmesh.require_living(from_agent, send.sender) where send.sender is not null;
      perform agentmesh.require_living(to_agent, send.recipient);
    end if;
    perform agentmesh.require_room_in_mailbox(to_agent, send.sender);
    mail_id := agentmesh.deliver(to_agent, send.sender, send.body, send.key, images => send.images);
    if from_agent.owes_report then
      update agentmesh.agents a set owes_report = false where a.id = send.sender;
    end if;
  end if;
  if (send.caller).worker_id is not null then
    perform agentmesh.close_sent(from_agent, to_agent, mail_id, send.caller);
  end if;
  return mail_id;
end $$;

comment on function agentmesh.send is
  'Put one message into the recipient''s mailbox; durable when it returns. sender null is the user. A repeated key, for the same sender and recipient, returns the same id. images are references to images of the session (keep_image), null if there are none.';

create function agentmesh.mail_of_key(sender uuid, recipient uuid, key text, body text, images jsonb) returns bigint
language plpgsql set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- The recipient's row is locked, so nobody else delivers under the same key meanwhile.
declare
  known record;
begin
  if octet_length(mail_of_key.key) not between 1 and 200 then
    perform agentmesh.refuse('AM004', format('the key is %s bytes long, not 1 to 200', octet_length(mail_of_key.key)),
      'Take a shorter one, a UUID for example.');
  end if;
  select m.id, m.body, m.images into known from agentmesh.mail m
  where m.recipient = mail_of_key.recipient and m.sender is not distinct from mail_of_key.sender and m.key = mail_of_key.key;
  if known.id is not null and (known.body, known.images) is distinct from (mail_of_key.body, mail_of_key.images) then
    perform agentmesh.refuse('AM023', format('the key %s was already used for another message', quote_literal(left(mail_of_key.key, 60))),
      'Take a new key for a new message.');
  end if;
  return known.id;
end $$;

comment on function agentmesh.mail_of_key is
  'Return the mail that was sent earlier under a key, null if there is none; refuse a key that another message has.';

create function agentmesh.require_room_in_mailbox(recipient agentmesh.agents, sender uuid) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off as $$
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
  perform agentmesh.close_call(sender.id, caller, jsonb_build_object('status', 'sent',
    'to', jsonb_build_object('agent_id', recipient.id, 'name', recipient.name), 'message_id', mail_id));
  perform pg_notify('session_event_' || sender.session_id, 'step ' || sender.id);
end $$;

comment on function agentmesh.close_sent is 'Write the result of a send tool''s call.';

create function agentmesh.deliver(recipient agentmesh.agents, sender uuid, body text, key text default null,
  automatic boolean default false, failed boolean default false, images jsonb default null) returns bigint
language plpgsql as $$
declare
  new_id bigint;
begin
  insert into agentmesh.mail (session_id, sender, recipient, body, key, automatic, failed, images)
  values (recipient.session_id, deliver.sender, recipient.id, deliver.body, deliver.key, deliver.automatic, deliver.failed, deliver.images)
  returning id into new_id;
  if recipient.status = 'idle' then
    perform agentmesh.wake(recipient, new_id, deliver.sender is null);
  elsif recipient.worker_id is null and not recipient.external then
    perform agentmesh.notify_work(recipient.session_id);
  end if;
  perform agentmesh.notify_agent(recipient.id, recipient.session_id, 'mail');
  return new_id;
end $$;

comment on function agentmesh.deliver is 'Store one mail for the locked recipient, wake it and tell it.';

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

comment on function agentmesh.wake is
  'Wake the locked agent if it is idle and this mail may wake it. After 25 wake-ups in a row by agents, in which it did nothing but send, no agent can wake it: otherwise two agents could thank each other for ever.';

create function agentmesh.take_back(mail bigint) returns text
language plpgsql as $$
#variable_conflict use_column
declare
  found_mail agentmesh.mail;
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.lock_agents(array[(select m.recipient from agentmesh.mail m where m.id = take_back.mail)]);
  select * into found_mail from agentmesh.mail m where m.id = take_back.mail and m.sender is null;
  if found_mail.id is null then
    perform agentmesh.refuse('AM024', format('there is no message %s of the user', coalesce(take_back.mail::text, 'null')), 'Only your own messages can be taken back.');
  elsif found_mail.read_at is not null or found_mail.withdrawn_at is not null then
    perform agentmesh.refuse('AM024', format('%s has read the message already', agentmesh.label(me)), 'Interrupt it, or write what you want instead.');
  end if;
  update agentmesh.mail m set withdrawn_at = clock_timestamp() where m.id = take_back.mail;
  perform pg_notify('session_event_' || me.session_id, 'mail ' || me.id);
  return found_mail.body;
end $$;

comment on function agentmesh.take_back is 'Withdraw a message of the user that its recipient has not read; returns its text.';
