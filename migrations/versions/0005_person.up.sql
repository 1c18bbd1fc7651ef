-- What a person does in a screen: capture, notes, retry, taking back, other models and tools, titles and modes.
-- The rules of 0002_verbs hold here too. Locks: fork_captured takes the session's row, then the agent's; all others
-- the agent's only (rename_session the session's only; set_mode the session's, then those that ask a person).

-- the newest event that began or ended a capture
create index transcript_capture on agentmesh.transcript (agent_id, seq)
  where kind = 'event' and content ->> 'event' in ('capture_begun', 'capture_ended');

-- The seq of the event that began the agent's open capture, null without one. The rows are the truth: a capture
-- survives every restart.
create function agentmesh.open_capture(agent uuid) returns bigint
language sql stable as $$
  select case when t.content ->> 'event' = 'capture_begun' then t.seq end from agentmesh.transcript t
  where t.agent_id = agent and t.kind = 'event' and t.content ->> 'event' in ('capture_begun', 'capture_ended')
  order by t.seq desc limit 1
$$;

-- Lock one agent that must be alive.
create function agentmesh.lock_living(agent uuid) returns agentmesh.agents
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.require_living(me, agent);
  return me;
end $$;

-- Append a row that no model sees to a locked agent, and tell screens.
create function agentmesh.remark(me agentmesh.agents, kind text, content jsonb) returns bigint
language plpgsql as $$
declare
  at_seq bigint := agentmesh.append(me.id, remark.kind, remark.content);
begin
  perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  return at_seq;
end $$;

create function agentmesh.require_capture(me agentmesh.agents) returns bigint
language plpgsql as $$
declare
  begun bigint := agentmesh.open_capture(me.id);
begin
  if begun is null then
    perform agentmesh.refuse('AM060', format('%s is in no capture', agentmesh.label(me)), 'Begin one: /capture. It may have been ended in another terminal.');
  end if;
  return begun;
end $$;

-- Begin a capture; whether there was none. From here on what a person types is kept from every model.
create function agentmesh.begin_capture(agent uuid) returns boolean
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  if agentmesh.open_capture(me.id) is not null then
    return false;
  end if;
  perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'capture_begun',
    'text', 'capturing: what you type is kept from every model until /fork or /cancel'));
  return true;
end $$;

-- capture: keep one text that no model sees; the agent must be in a capture. Returns its seq.
create function agentmesh.capture(agent uuid, text text) returns bigint
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  perform agentmesh.require_capture(me);
  perform agentmesh.require_body(capture.text);
  return agentmesh.remark(me, 'capture', jsonb_build_object('text', capture.text));
end $$;

-- End a capture without making anything of it; the text stays where it is.
create function agentmesh.cancel_capture(agent uuid) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  perform agentmesh.require_capture(me);
  perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'capture_ended', 'text', 'capture cancelled; the text stays here'));
end $$;

-- A person's fork: make a child of what was captured, and end the capture. Nothing captured: an idle child. One commit,
-- so a refused fork leaves the capture open. Returns the child.
create function agentmesh.fork_captured(parent uuid, name text default 'fork') returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  begun bigint;
  prompt text;
  child uuid;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = fork_captured.parent));
  me := agentmesh.lock_living(fork_captured.parent);
  begun := agentmesh.open_capture(me.id);
  select string_agg(t.content ->> 'text', E'\n\n' order by t.seq) into prompt
  from agentmesh.transcript t where t.agent_id = me.id and t.seq > begun and t.kind = 'capture';
  child := agentmesh.fork(me.id, fork_captured.name, prompt);
  if begun is not null then
    perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'capture_ended', 'child', child,
      'text', 'capture ended: forked ' || (select agentmesh.label(a) from agentmesh.agents a where a.id = child)));
  end if;
  return child;
end $$;

-- note: keep a row that no model sees: what a person's command was and said. Returns its seq.
create function agentmesh.note(agent uuid, content jsonb) returns bigint
language plpgsql as $$
begin
  return agentmesh.remark(agentmesh.lock_living(agent), 'command', note.content);
end $$;

-- retry: run the last turn's rest once more, without new mail, after an error or an interrupt. The agent is running then.
create function agentmesh.retry(agent uuid) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
  ended text;
  last text;
begin
  me := agentmesh.lock_living(agent);
  select t.kind into ended from agentmesh.transcript t where t.agent_id = me.id and t.seq = me.ended_seq;
  select t.kind into last from agentmesh.transcript t
  where t.agent_id = me.id and t.kind in ('user', 'assistant', 'tool_result', 'mail') order by t.seq desc limit 1;
  if me.status <> 'idle' then
    perform agentmesh.refuse('AM053', format('%s is busy', agentmesh.label(me)), 'Let its turn end, or interrupt it.');
  elsif me.external then
    perform agentmesh.refuse('AM061', format('the turns of %s are run by somebody else', agentmesh.label(me)), 'Send it a message.');
  elsif ended is null or ended = 'assistant' then
    perform agentmesh.refuse('AM061', format('the last turn of %s did not fail', agentmesh.label(me)), 'Write to it what it should do.');
  elsif exists (select from agentmesh.transcript t where t.agent_id = me.id and t.seq > me.ended_seq and t.kind = 'event'
                and t.content ->> 'event' in ('cleared', 'rewound')) then
    perform agentmesh.refuse('AM061', format('the conversation of %s was cleared or rewound since', agentmesh.label(me)), 'Write to it what it should do.');
  elsif last is null then
    perform agentmesh.refuse('AM061', format('%s has been told nothing yet', agentmesh.label(me)), 'Write to it what it should do.');
  elsif last = 'assistant' then
    -- It was interrupted in the middle of an answer, which is kept. No model is asked with an answer of its own at the end.
    perform agentmesh.append(me.id, 'user', jsonb_build_object('text', 'Go on from where you were interrupted.', 'retry', true));
  end if;
  update agentmesh.agents a set status = 'running', turn = a.turn + 1, queued_at = clock_timestamp(), agent_wakes = 0 where a.id = me.id;
  perform agentmesh.notify_work(me.session_id);
  perform pg_notify('session_event_' || me.session_id, 'turn ' || me.id);
end $$;

-- Take back a message of the user that its recipient has not read; returns its text.
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

-- Give an agent another model, from its next turn on; its later forks have it too.
create function agentmesh.set_model(agent uuid, model text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  if coalesce(btrim(set_model.model), '') = '' then
    perform agentmesh.refuse('AM004', 'the model has no name', 'Write it as provider/model.');
  end if;
  update agentmesh.agents a set model = set_model.model where a.id = me.id;
  perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'model', 'model', set_model.model,
    'text', format('model: %s, from the next turn on; the provider''s cache is lost', set_model.model)));
end $$;

-- Give an agent another system prompt or other tools (null: as they are), from its next turn on; its later forks have
-- them too. what is the event's text.
create function agentmesh.set_settings(agent uuid, system_prompt text, tools jsonb, what text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  now_is agentmesh.settings;
  setting text;
begin
  me := agentmesh.lock_living(agent);
  select * into now_is from agentmesh.settings s where s.id = me.settings_id;
  now_is.system_prompt := coalesce(set_settings.system_prompt, now_is.system_prompt);
  now_is.tools := coalesce(set_settings.tools, now_is.tools);
  setting := encode(sha256(convert_to(now_is.system_prompt || E'\n' || now_is.tools::text, 'UTF8')), 'hex');
  insert into agentmesh.settings (id, system_prompt, tools) values (setting, now_is.system_prompt, now_is.tools) on conflict do nothing;
  update agentmesh.agents a set settings_id = setting where a.id = me.id;
  perform agentmesh.remark(me, 'event', jsonb_build_object('event', 'settings',
    'text', what || ', from the next turn on; the provider''s cache is lost'));
end $$;

-- Give a session another title.
create function agentmesh.rename_session(session uuid, title text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  update agentmesh.sessions s set title = left(btrim(rename_session.title), 200) where s.id = rename_session.session;
  if not found then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
  perform pg_notify('session_event_' || rename_session.session, 'session');
end $$;

-- Change what tools of a session may do without asking; holds at once for all its agents.
create function agentmesh.set_mode(session uuid, mode text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.require_read_committed();
  if (agentmesh.lock_session(set_mode.session)).id is null then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
  perform agentmesh.lock_agents(agentmesh.asking(set_mode.session));
  update agentmesh.sessions s set permission_mode = set_mode.mode where s.id = set_mode.session;
  perform agentmesh.judge_again(set_mode.session);
  perform pg_notify('session_event_' || set_mode.session, 'session');
end $$;

revoke execute on all functions in schema agentmesh from public;
