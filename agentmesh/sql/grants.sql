create function agentmesh.grant_roles() returns void
language plpgsql as $$
-- For the schema's owner: `agentmesh db upgrade` calls it, because roles belong to the server: they may be created
-- after the schema, or be missing where a dump is restored.
begin
  perform pg_advisory_xact_lock(7018698886636662113);  -- one after the other: two GRANTs on one table at the same time fail
  revoke execute on all functions in schema agentmesh from public;
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    grant usage on schema agentmesh to agentmesh_reader;
    grant select on agentmesh.v_agents, agentmesh.v_mail, agentmesh.v_transcript, agentmesh.v_waits, agentmesh.v_cost, agentmesh.v_budgets, agentmesh.v_timeline,
      agentmesh.v_stuck, agentmesh.v_requests, agentmesh.v_sessions, agentmesh.v_workspaces, agentmesh.v_changes, agentmesh.v_conflicts, agentmesh.v_merges, agentmesh.v_images, agentmesh.v_tasks, agentmesh.v_timers, agentmesh.v_limits, agentmesh.v_forms, agentmesh.v_batches, agentmesh.v_batch_items, agentmesh.v_todos, agentmesh.v_processes to agentmesh_reader;
    grant execute on function agentmesh.path, agentmesh.lineage, agentmesh.subtree, agentmesh.batch_progress, agentmesh.serves, agentmesh.has_room, agentmesh.endpoint, agentmesh.counts, agentmesh.most_living, agentmesh.search to agentmesh_reader;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_worker') then
    perform agentmesh.grant_to_workers();
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_person') then  -- a member of agentmesh_worker
    grant usage on schema agentmesh to agentmesh_person;
    grant execute on function agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.set_limits, agentmesh.answer, agentmesh.allow, agentmesh.forget_rules,
      agentmesh.set_endpoints, agentmesh.forget_bills, agentmesh.rename, agentmesh.set_leases, agentmesh.workspace_moved, agentmesh.place_root, agentmesh.pin_session, agentmesh.end_session to agentmesh_person;
    grant execute on function agentmesh.begin_move, agentmesh.call_off_move, agentmesh.depart, agentmesh.end_move, agentmesh.arrive, agentmesh.number_arrival, agentmesh.unpack, agentmesh.discard_arrival to agentmesh_person;
    grant insert on agentmesh.arrival_rows to agentmesh_person;
    grant insert on agentmesh.sessions to agentmesh_person;
    grant delete on agentmesh.model_bills to agentmesh_person;
    grant update (permission_mode, rules, max_tokens, max_cost_usd, endpoints, leases, max_depth, max_children, max_agents, max_living, ask_agents, max_unread, max_spawns, max_turns, max_turn_seconds, deadline, limits_set_at, pinned, ended_at) on agentmesh.sessions to agentmesh_person;
    grant update (max_tokens, max_cost_usd, name, workspace_id) on agentmesh.agents to agentmesh_person;
  end if;
end $$;

comment on function agentmesh.grant_roles is 'Give the existing roles their rights, again if they have them already.';
create function agentmesh.grant_to_workers() returns void
language plpgsql as $$
begin
  grant usage on schema agentmesh to agentmesh_worker;
  grant execute on all functions in schema agentmesh to agentmesh_worker;
  revoke execute on function agentmesh.grant_roles, agentmesh.grant_to_workers, agentmesh.start_session, agentmesh.set_mode, agentmesh.set_budget, agentmesh.set_limits, agentmesh.answer, agentmesh.allow,
    agentmesh.forget_rules, agentmesh.set_endpoints, agentmesh.forget_bills, agentmesh.rename, agentmesh.set_leases, agentmesh.workspace_moved, agentmesh.place_root, agentmesh.pin_session, agentmesh.end_session,
    agentmesh.begin_move, agentmesh.call_off_move, agentmesh.depart, agentmesh.end_move, agentmesh.arrive, agentmesh.number_arrival, agentmesh.unpack, agentmesh.discard_arrival from agentmesh_worker;
  grant select on all tables in schema agentmesh to agentmesh_worker;
  revoke insert on agentmesh.settings from agentmesh_worker;  -- keep_settings has its owner's rights
  grant insert on agentmesh.workers, agentmesh.agents, agentmesh.activity, agentmesh.transcript, agentmesh.mail, agentmesh.wait,
    agentmesh.waits, agentmesh.tool_calls, agentmesh.tasks, agentmesh.model_calls, agentmesh.file_seen, agentmesh.pauses, agentmesh.session_usage,
    agentmesh.bookings, agentmesh.reservations, agentmesh.model_bills, agentmesh.workspaces, agentmesh.snapshots, agentmesh.changes, agentmesh.merges,
    agentmesh.conflicts, agentmesh.leases, agentmesh.images, agentmesh.timers, agentmesh.prefixes, agentmesh.forms, agentmesh.batches, agentmesh.batch_items, agentmesh.todos, agentmesh.processes,
    agentmesh.capabilities, agentmesh.slots to agentmesh_worker;
  -- A worker that could change a mode or a cap could allow itself more than a person has allowed: these rights belong
  -- to agentmesh_person. A worker may write an answer if a rule now allows the call (`ask`), but must not insert it with
  -- the request.
  revoke insert on agentmesh.sessions, agentmesh.requests from agentmesh_worker;
  revoke update (permission_mode, rules, max_tokens, max_cost_usd, ended_at) on agentmesh.sessions from agentmesh_worker;
  revoke update (max_tokens, max_cost_usd) on agentmesh.agents from agentmesh_worker;
  grant insert (session_id, agent_id, seq, ordinal, kind, tool, arguments, reason, rules, question, options, agents, covers) on agentmesh.requests to agentmesh_worker;
  grant update (title, attended, tree_version) on agentmesh.sessions to agentmesh_worker;
  grant update (backend_pid, seen_at, lost_at, back_at, server_started_at, ended_at, endpoints) on agentmesh.workers to agentmesh_worker;
  grant update (status, model, settings_id, former_settings, inherits, turn, started_turn, turn_calls, turn_began, interrupt_turn, interrupted_by, halted, compact_turn, held_mail, owes_report, owed_seq, agent_wakes, ended_seq, ended_as, unseen,
    worker_id, epoch, queued_at, tool_calls, model_calls, input_tokens, output_tokens, cached_tokens, cost_usd, unpriced_calls,
    died_at, killed_by, reaped_at, lines_added, lines_removed, holds_lease) on agentmesh.agents to agentmesh_worker;
  grant update (state, path, host, os_user, repository, problem, base, head, ready_at, removed_at) on agentmesh.workspaces to agentmesh_worker;
  grant update (state, reason, conflicts, ended_at, undone_at, undone_by) on agentmesh.merges to agentmesh_worker;
  grant update (status, owner, claimed_at, done_at, note) on agentmesh.todos to agentmesh_worker;
  grant update (freed_at) on agentmesh.snapshots to agentmesh_worker;
  grant update (over_at, told_at) on agentmesh.conflicts to agentmesh_worker;
  grant update (activity, at) on agentmesh.activity to agentmesh_worker;
  grant update (due_at, rung, mail_id, held_up, ended_at, ended_as) on agentmesh.timers to agentmesh_worker;
  grant update (state, exit_code, output, output_bytes, matches, match_mail_id, stop_at, ended_at) on agentmesh.processes to agentmesh_worker;
  grant update (read_at, read_seq, withdrawn_at) on agentmesh.mail to agentmesh_worker;
  grant update (status, result_seq, started_at, ended_at, epoch) on agentmesh.tool_calls to agentmesh_worker;
  grant update (answer, answered_at, answered_by, cancelled_at) on agentmesh.requests to agentmesh_worker;
  grant update (status, ended_at, background, result, attempts, check_exit) on agentmesh.tasks to agentmesh_worker;
  grant update (status, ended_at, result, attempts, check_exit) on agentmesh.forms to agentmesh_worker;
  grant update (until, reason, set_by, at) on agentmesh.pauses to agentmesh_worker;
  grant update (agent_id, held_until, warm_at) on agentmesh.prefixes to agentmesh_worker;
  grant update (streams, needs_choice, forced_calls, slots, context_window, caches, set_by, at) on agentmesh.capabilities to agentmesh_worker;
  grant update (epoch, model, key, tokens, since, entered_at) on agentmesh.slots to agentmesh_worker;
  grant update (running, started, done, failed, looked_at, ended_at) on agentmesh.batches to agentmesh_worker;
  grant update (state, child, result) on agentmesh.batch_items to agentmesh_worker;
  grant update (tokens, cost_usd) on agentmesh.session_usage to agentmesh_worker;
  grant update (epoch, tokens, cost_usd, at, input_tokens, output_tokens, input_usd, output_usd, is_first, waits, address, model) on agentmesh.reservations to agentmesh_worker;
  grant update (input_excess, output_excess, least_input, even_usd, steep_usd, least_usd, input_usd, cached_usd, output_usd, list_excess, at) on agentmesh.model_bills to agentmesh_worker;
  grant delete on agentmesh.prefixes, agentmesh.slots, agentmesh.wait, agentmesh.bookings, agentmesh.reservations, agentmesh.leases to agentmesh_worker;
end $$;

comment on function agentmesh.grant_to_workers is 'Give the workers'' role its rights: see grant_roles, which alone calls it.';


-- The roles belong to the server. If this user may not create them, `agentmesh db upgrade` says what another user can
-- do.
do $$
begin
  if not exists (select from pg_roles where rolname = 'agentmesh_reader') then
    begin
      create role agentmesh_reader login;  -- a login of its own: SET ROLE and read-only transactions are no boundary
    exception
      when insufficient_privilege or duplicate_object or unique_violation then null;
    end;
  end if;
  if not exists (select from pg_roles where rolname = 'agentmesh_worker') then
    begin
      create role agentmesh_worker nologin;
    exception
      when insufficient_privilege or duplicate_object or unique_violation then null;
    end;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_worker') and not exists (select from pg_roles where rolname = 'agentmesh_person') then
    begin
      create role agentmesh_person nologin in role agentmesh_worker;
    exception
      when insufficient_privilege or duplicate_object or unique_violation then null;
    end;
  end if;
  perform agentmesh.grant_roles();
end $$;
