-- What a person decides is no longer a worker's to change: a role for people, and rules that are given when a run begins.
--
-- A worker runs what models say, with a password of the database at hand. Whoever got hold of it could set a session to mode `all`, allow things for
-- good, raise its caps, begin a session without any, or make an agent that may do more than its parent. Now a worker's login can do none of
-- that; people log in as members of agentmesh_person, which may do all that a worker may, and these things.

-- Allow what rules say for a whole session, as an answer of "always" does; how many rules are new.
create function agentmesh.allow(session uuid, rules jsonb) returns integer
language plpgsql as $$
#variable_conflict use_column
declare
  locked agentmesh.sessions;
  added jsonb;
begin
  perform agentmesh.require_read_committed();
  locked := agentmesh.lock_session(allow.session);
  if locked.id is null then
    perform agentmesh.refuse('AM015', format('there is no session %s', coalesce(session::text, 'null')), 'agentmesh sessions lists them.');
  end if;
  perform agentmesh.lock_agents(agentmesh.asking(allow.session));
  select coalesce(jsonb_agg(n), '[]') into added from jsonb_array_elements(allow.rules) n
  where n ->> 'effect' = 'allow' and not locked.rules @> jsonb_build_array(n);
  update agentmesh.sessions s set rules = s.rules || added where s.id = allow.session;
  perform agentmesh.judge_again(allow.session);
  perform pg_notify('session_event_' || allow.session, 'session');
  return jsonb_array_length(added);
end $$;

-- An agent's permissions begin with its parent's layers, whoever inserts its row: each further layer only takes away.
create function agentmesh.require_parents_permissions() returns trigger
language plpgsql as $$
declare
  above jsonb;
begin
  if new.parent_id is null then
    return new;  -- a root, which begins with its session
  end if;
  select a.permissions into above from agentmesh.agents a where a.id = new.parent_id;
  if new.permissions is distinct from above and exists (
    select from jsonb_array_elements(case when above = '[]' then '[[]]' else above end) with ordinality layers (layer, place)
    where new.permissions -> (place::integer - 1) is distinct from layer)
  then
    raise insufficient_privilege using message = format('agent %s may not do more than its parent', new.name);
  end if;
  return new;
end $$;
create trigger permissions_only_narrow before insert on agentmesh.agents for each row execute function agentmesh.require_parents_permissions();

create or replace function agentmesh.grant_roles() returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(7018698886636662113);  -- an upgrade's (store/schema.py): two GRANTs at once on one table fail
  revoke execute on all functions in schema agentmesh from public;
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    grant usage on schema agentmesh to agentmesh_reader;
    grant select on agentmesh.v_agents, agentmesh.v_mail, agentmesh.v_transcript, agentmesh.v_waits, agentmesh.v_cost, agentmesh.v_budgets,
      agentmesh.v_timeline, agentmesh.v_stuck, agentmesh.v_requests to agentmesh_reader;
    grant execute on function agentmesh.path, agentmesh.lineage, agentmesh.subtree, agentmesh.serves to agentmesh_reader;
    if to_regproc('agentmesh.search') is not null then  -- a later migration makes it
      grant execute on function agentmesh.search to agentmesh_reader;
    end if;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_worker') then
    grant usage on schema agentmesh to agentmesh_worker;
    grant execute on all functions in schema agentmesh to agentmesh_worker;
    revoke execute on function agentmesh.grant_roles, agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.answer,
      agentmesh.allow, agentmesh.forget_rules from agentmesh_worker;
    grant select on all tables in schema agentmesh to agentmesh_worker;
    grant insert on agentmesh.settings, agentmesh.workers, agentmesh.agents, agentmesh.activity, agentmesh.transcript,
      agentmesh.mail, agentmesh.wait, agentmesh.waits, agentmesh.tool_calls, agentmesh.tasks, agentmesh.model_calls,
      agentmesh.file_seen, agentmesh.pauses, agentmesh.session_usage, agentmesh.bookings, agentmesh.reservations to agentmesh_worker;
    -- Whoever may change a mode or a cap could allow what a person has not: these rights are agentmesh_person's. An answer a worker may write where
    -- a rule allows by now what was asked (`ask`), but not insert with the request.
    revoke insert on agentmesh.sessions, agentmesh.requests from agentmesh_worker;
    revoke update (permission_mode, rules, max_tokens, max_cost_usd) on agentmesh.sessions from agentmesh_worker;
    revoke update (max_tokens, max_cost_usd) on agentmesh.agents from agentmesh_worker;
    grant insert (session_id, agent_id, seq, ordinal, kind, tool, arguments, reason, rules, question, options) on agentmesh.requests to agentmesh_worker;
    grant update (title, attended, ended_at, tree_version) on agentmesh.sessions to agentmesh_worker;
    grant update (backend_pid, seen_at, lost_at, ended_at) on agentmesh.workers to agentmesh_worker;
    grant update (status, model, settings_id, turn, started_turn, interrupt_turn, compact_turn, held_mail, owes_report, agent_wakes, ended_seq,
      worker_id, epoch, queued_at, tool_calls, model_calls, input_tokens, output_tokens, cached_tokens, cost_usd, unpriced_calls,
      died_at, killed_by, reaped_at) on agentmesh.agents to agentmesh_worker;
    grant update (activity, at) on agentmesh.activity to agentmesh_worker;
    grant update (read_at, read_seq, withdrawn_at) on agentmesh.mail to agentmesh_worker;
    grant update (status, result_seq, started_at, ended_at, epoch) on agentmesh.tool_calls to agentmesh_worker;
    grant update (answer, answered_at, answered_by, cancelled_at) on agentmesh.requests to agentmesh_worker;
    grant update (status, ended_at) on agentmesh.tasks to agentmesh_worker;
    grant update (until, reason, set_by, at) on agentmesh.pauses to agentmesh_worker;
    grant update (tokens, cost_usd) on agentmesh.session_usage to agentmesh_worker;
    grant update (epoch, tokens, cost_usd, at) on agentmesh.reservations to agentmesh_worker;
    grant delete on agentmesh.wait, agentmesh.bookings, agentmesh.reservations to agentmesh_worker;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_person') then  -- a member of agentmesh_worker
    grant usage on schema agentmesh to agentmesh_person;
    grant execute on function agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.answer, agentmesh.allow,
      agentmesh.forget_rules to agentmesh_person;
    grant insert on agentmesh.sessions to agentmesh_person;
    grant update (permission_mode, rules, max_tokens, max_cost_usd) on agentmesh.sessions to agentmesh_person;
    grant update (max_tokens, max_cost_usd) on agentmesh.agents to agentmesh_person;
  end if;
end $$;

-- Where this user may not make roles, `agentmesh db upgrade` says what somebody else can do.
do $$
begin
  if exists (select from pg_roles where rolname = 'agentmesh_worker') and not exists (select from pg_roles where rolname = 'agentmesh_person') then
    begin
      create role agentmesh_person nologin in role agentmesh_worker;
    exception
      when insufficient_privilege or duplicate_object or unique_violation then null;
    end;
  end if;
  perform agentmesh.grant_roles();
end $$;
