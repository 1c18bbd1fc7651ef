create function agentmesh.begin_capture(agent uuid) returns boolean
language plpgsql as $$
-- From now on no model sees the texts that a person types.
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  if agentmesh.open_capture(me.id) is not null then
    return false;
  end if;
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'capture_begun',
    'text', 'capturing: what you type is kept from every model until /fork or /cancel'));
  return true;
end $$;

comment on function agentmesh.begin_capture is 'Begin a capture; returns false if one was open already.';

create function agentmesh.capture(agent uuid, text text) returns bigint
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  perform agentmesh.require_capture(me);
  perform agentmesh.require_body(capture.text);
  return agentmesh.append_and_tell(me, 'capture', jsonb_build_object('text', capture.text));
end $$;

comment on function agentmesh.capture is 'Keep one text that no model sees; the agent must be in a capture. Returns its seq.';

create function agentmesh.cancel_capture(agent uuid) returns void
language plpgsql as $$
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  perform agentmesh.require_capture(me);
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'capture_ended', 'text', 'capture cancelled; the text stays here'));
end $$;

comment on function agentmesh.cancel_capture is 'End a capture without using it; the text stays where it is.';

create function agentmesh.open_capture(agent uuid) returns bigint
language sql stable as $$
-- The rows are the truth: a capture survives every restart.
  select case when t.content ->> 'event' = 'capture_begun' then t.seq end from agentmesh.transcript t
  where t.agent_id = agent and t.kind = 'event' and t.content ->> 'event' in ('capture_begun', 'capture_ended')
  order by t.seq desc limit 1
$$;

comment on function agentmesh.open_capture is 'The seq of the event that began the agent''s open capture, or null.';

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
    perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'capture_ended', 'child', child,
      'text', 'capture ended: forked ' || (select agentmesh.label(a) from agentmesh.agents a where a.id = child)));
  end if;
  return child;
end $$;

comment on function agentmesh.fork_captured is
  'A person''s fork: make a child with the captured text as its prompt, and end the capture. If nothing was captured, the child is idle. One commit, so a refused fork leaves the capture open. Returns the child.';

create function agentmesh.note(agent uuid, content jsonb) returns bigint
language plpgsql as $$
-- Returns its seq.
begin
  return agentmesh.append_and_tell(agentmesh.lock_living(agent), 'command', note.content);
end $$;

comment on function agentmesh.note is 'Keep a row that no model sees: a person''s command and its result.';

create function agentmesh.append_and_tell(me agentmesh.agents, kind text, content jsonb) returns bigint
language plpgsql as $$
declare
  at_seq bigint := agentmesh.append(me.id, append_and_tell.kind, append_and_tell.content);
begin
  perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  return at_seq;
end $$;

comment on function agentmesh.append_and_tell is 'Append a row that no model sees to a locked agent, and tell screens.';

create function agentmesh.set_model(agent uuid, model text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
begin
  me := agentmesh.lock_living(agent);
  perform agentmesh.require_model(set_model.model);
  update agentmesh.agents a set model = set_model.model where a.id = me.id;
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'model', 'model', set_model.model,
    'text', format('model: %s, from the next turn on; the provider''s cache is lost', set_model.model)));
end $$;

comment on function agentmesh.set_model is 'Give an agent another model, from its next turn on; its later forks have it too.';

create function agentmesh.set_settings(agent uuid, system_prompt text, tools jsonb, what text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  now_is agentmesh.settings;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = set_settings.agent));  -- a fork may give the former ones to a child
  me := agentmesh.lock_living(agent);
  select * into now_is from agentmesh.settings s where s.id = me.settings_id;
  now_is.system_prompt := coalesce(set_settings.system_prompt, now_is.system_prompt);
  now_is.tools := coalesce(set_settings.tools, now_is.tools);
  me.former_settings := me.former_settings || me.settings_id;
  update agentmesh.agents a set settings_id = agentmesh.keep_settings(now_is.system_prompt, now_is.tools),
    former_settings = case when me.status <> 'idle' then me.former_settings end  -- its worker may be about to read them
  where a.id = me.id;
  if me.status = 'idle' then
    perform agentmesh.forget_settings(me.former_settings);
  end if;
  perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', 'settings',
    'text', what || ', from the next turn on; the provider''s cache is lost'));
end $$;

comment on function agentmesh.set_settings is
  'Give an agent another system prompt or other tools (null: unchanged), from its next turn on; its later forks have them too. what is the event''s text.';
