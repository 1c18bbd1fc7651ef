-- The role itself stays: it is the server's, and other databases may use it.
do $$
begin
  if exists (select from pg_roles where rolname = 'agentmesh_person') then
    revoke all on all tables in schema agentmesh from agentmesh_person;
    revoke all on all functions in schema agentmesh from agentmesh_person;
    revoke usage on schema agentmesh from agentmesh_person;
  end if;
  if exists (select from pg_roles where rolname = 'agentmesh_worker') then
    revoke insert on agentmesh.requests from agentmesh_worker;
  end if;
end $$;
drop trigger permissions_only_narrow on agentmesh.agents;
drop function agentmesh.require_parents_permissions;
drop function agentmesh.allow;

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
    revoke execute on function agentmesh.grant_roles from agentmesh_worker;
    grant select on all tables in schema agentmesh to agentmesh_worker;
    grant insert on agentmesh.sessions, agentmesh.settings, agentmesh.workers, agentmesh.agents, agentmesh.activity, agentmesh.transcript,
      agentmesh.mail, agentmesh.wait, agentmesh.waits, agentmesh.tool_calls, agentmesh.requests, agentmesh.tasks, agentmesh.model_calls,
      agentmesh.file_seen, agentmesh.pauses, agentmesh.session_usage, agentmesh.bookings, agentmesh.reservations to agentmesh_worker;
    grant update (title, permission_mode, rules, attended, max_tokens, max_cost_usd, ended_at, tree_version) on agentmesh.sessions to agentmesh_worker;
    grant update (backend_pid, seen_at, lost_at, ended_at) on agentmesh.workers to agentmesh_worker;
    grant update (status, model, settings_id, turn, started_turn, interrupt_turn, compact_turn, held_mail, owes_report, agent_wakes, ended_seq,
      worker_id, epoch, queued_at, tool_calls, model_calls, input_tokens, output_tokens, cached_tokens, cost_usd, unpriced_calls, max_tokens,
      max_cost_usd, died_at, killed_by, reaped_at) on agentmesh.agents to agentmesh_worker;
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
end $$;

select agentmesh.grant_roles();
