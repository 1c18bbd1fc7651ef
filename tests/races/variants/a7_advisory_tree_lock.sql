-- A7: an advisory tree lock, which every role can take.
create or replace function agentmesh.lock_session(session uuid) returns agentmesh.sessions
language sql as $$
  select pg_advisory_xact_lock(hashtext(session::text));
  select * from agentmesh.sessions where id = session
$$;
