-- A6: an advisory tree lock, and verbs that run at any isolation level: in REPEATABLE READ the look is older than the lock.
create or replace function agentmesh.require_read_committed() returns void language sql as $$ select $$;
create or replace function agentmesh.lock_session(session uuid) returns agentmesh.sessions
language sql as $$
  select pg_advisory_xact_lock(hashtext(session::text));
  select * from agentmesh.sessions where id = session
$$;
