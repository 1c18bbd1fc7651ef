create function agentmesh.send_many(sender uuid, recipients uuid[], body text, key text default null, caller agentmesh.caller default null,
  audience text default null, around uuid default null, urgent boolean default false)
returns table (agent_id uuid, name text, message_id bigint)
language plpgsql
set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- All rows are locked at once, by id. The agent around which the audience is, too: it makes two calls with one key take turns.
declare
  center constant uuid := coalesce(send_many.around, send_many.sender);
  meant uuid[] := agentmesh.recipients_of(send_many.sender, send_many.recipients, send_many.audience, center);
  from_agent agentmesh.agents;
  one agentmesh.agents;
  sent bigint[] := '{}';
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_agents(meant || send_many.sender || center);
  select * into from_agent from agentmesh.agents a where a.id = send_many.sender;
  if (send_many.caller).worker_id is not null then
    perform agentmesh.fence(from_agent, send_many.caller);
    perform agentmesh.require_open_call(send_many.sender, send_many.caller);
  end if;
  perform agentmesh.require_agent(from_agent, send_many.sender) where send_many.sender is not null;
  perform agentmesh.require_one_session(meant, from_agent.session_id);
  sent := agentmesh.sent_under_key(send_many.sender, meant, send_many.key, send_many.body, send_many.audience, center);
  if sent = '{}' then
    perform agentmesh.require_body(send_many.body);
    perform agentmesh.require_living(from_agent, send_many.sender) where send_many.sender is not null;
    if send_many.audience is not null then
      meant := array(select a.id from unnest(meant) with ordinality w (id, place) join agentmesh.agents a on a.id = w.id
                     where a.status <> 'dead' order by w.place);
    end if;
    perform agentmesh.require_somebody(meant, send_many.audience, center);
    for one in select a.* from unnest(meant) with ordinality w (id, place) join agentmesh.agents a on a.id = w.id order by w.place loop
      perform agentmesh.require_living(one, one.id);
      perform agentmesh.require_room_in_mailbox(one, send_many.sender);
      sent := sent || agentmesh.deliver(one, send_many.sender, send_many.body, send_many.key, urgent => coalesce(send_many.urgent, false));
    end loop;
    -- As in send: a message is no report of a fixed form.
    update agentmesh.agents a set owes_report = false
    where a.id = send_many.sender and a.owes_report and not exists (select from agentmesh.forms f where f.agent_id = a.id);
  end if;
  if (send_many.caller).worker_id is not null then
    perform agentmesh.close_sent_many(from_agent, sent, send_many.caller);
  end if;
  return query select a.id, a.name, m.id from agentmesh.mail m join agentmesh.agents a on a.id = m.recipient where m.id = any (sent) order by m.id;
end $$;

comment on function agentmesh.send_many is
  'Put one message into several mailboxes in one commit: one mail each, or none if one of them refuses it. recipients are agents of one session; one that is listed twice gets it once. Or audience is children or session: the living agents below, or in the session of, the agent around (the sender, if it is not given), without the sender. A repeated key returns the same mails, also if agents have died or joined since. sender null is the user. At most 256 agents.';

create function agentmesh.recipients_of(sender uuid, recipients uuid[], audience text, center uuid) returns uuid[]
language plpgsql stable set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  session constant uuid := (select a.session_id from agentmesh.agents a where a.id = center);
  meant uuid[];
begin
  if (recipients is null) = (audience is null) or audience not in ('children', 'session') then
    perform agentmesh.refuse('AM004', 'a message to several goes to a list of agents, or to the audience children or session',
      'Give one of the two.');
  elsif audience is not null and session is null then
    perform agentmesh.require_agent(null, center);
  end if;
  meant := case audience
    when 'children' then array(select a.id from agentmesh.agents a where a.parent_id = center and a.status <> 'dead' order by a.created_at, a.id limit 258)
    when 'session' then array(select a.id from agentmesh.agents a where a.session_id = session and a.status <> 'dead' order by a.created_at, a.id limit 258)
    else array(select w.id from unnest(recipients) with ordinality w (id, place) group by w.id order by min(w.place)) end;
  if audience is not null then
    meant := array_remove(meant, recipients_of.sender);
  elsif recipients_of.sender = any (meant) then
    perform agentmesh.refuse('AM013', 'an agent cannot send to itself', 'Send to another agent.');
  end if;
  if cardinality(meant) > 256 then
    perform agentmesh.refuse('AM027', format('a message goes to at most 256 agents at once, not to %s',
      case when audience is null then cardinality(meant)::text else 'all agents of a larger audience' end),
      'List fewer, or let other agents pass it on.');
  end if;
  return meant;
end $$;

comment on function agentmesh.recipients_of is 'Return the recipients of a message to several, before they are locked: each once, in the order of the list.';

create function agentmesh.require_somebody(meant uuid[], audience text, center uuid) returns void
language plpgsql as $$
begin
  if cardinality(meant) = 0 then
    perform agentmesh.refuse('AM026', case when require_somebody.audience is null then 'the list of recipients is empty'
      else format('%s has no living %s', (select agentmesh.label(a) from agentmesh.agents a where a.id = center),
        case require_somebody.audience when 'children' then 'children' else 'agents besides it in its session' end) end,
      'Nobody got the message. Name an agent, or fork one.');
  end if;
end $$;

comment on function agentmesh.require_somebody is 'Refuse a message to nobody.';

create function agentmesh.require_one_session(meant uuid[], session uuid) returns void
language plpgsql as $$
#variable_conflict use_column
-- The user has no session: the first recipient's counts.
declare
  ours uuid := coalesce(session, (select a.session_id from agentmesh.agents a where a.id = meant[1]));
  one uuid;
  found_agent agentmesh.agents;
begin
  foreach one in array meant loop
    select * into found_agent from agentmesh.agents a where a.id = one;
    perform agentmesh.require_agent(found_agent, one);
    if found_agent.session_id <> ours then
      perform agentmesh.refuse('AM012', format('%s belongs to another session', agentmesh.label(found_agent)), 'Agents reach only their own session.');
    end if;
  end loop;
end $$;

comment on function agentmesh.require_one_session is 'Refuse agents that do not exist, or are not all of one session.';

create function agentmesh.sent_under_key(sender uuid, meant uuid[], key text, body text, audience text, center uuid) returns bigint[]
language plpgsql set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
-- An audience may have changed since: so all agents of the session are asked, also the dead.
declare
  whom uuid[] := case when audience is null then meant else
    array(select a.id from agentmesh.agents a where a.session_id = (select c.session_id from agentmesh.agents c where c.id = center)) end;
  known bigint[] := '{}';
begin
  if sent_under_key.key is not null then
    known := array(select m.id from unnest(whom) w (id)
      cross join lateral (select agentmesh.mail_of_key(sent_under_key.sender, w.id, sent_under_key.key, sent_under_key.body, null) as id) m
      where m.id is not null order by m.id);
    if audience is null and cardinality(known) not in (0, cardinality(meant)) then
      perform agentmesh.refuse_key(sent_under_key.key);
    end if;
  end if;
  return known;
end $$;

comment on function agentmesh.sent_under_key is 'Return the mail that was sent to several under a key earlier; refuse a key that another message has.';

create function agentmesh.close_sent_many(sender agentmesh.agents, sent bigint[], caller agentmesh.caller) returns void
language plpgsql as $$
begin
  -- No NOTIFY: the sender's worker tells screens of its rows.
  perform agentmesh.close_call(sender.id, caller, jsonb_build_object('status', 'sent', 'sent',
    (select jsonb_agg(jsonb_build_object('to', jsonb_build_object('agent_id', a.id, 'name', a.name), 'message_id', m.id) order by m.id)
     from agentmesh.mail m join agentmesh.agents a on a.id = m.recipient where m.id = any (sent))));
end $$;

comment on function agentmesh.close_sent_many is 'Write the result of a send tool''s call that went to several.';
