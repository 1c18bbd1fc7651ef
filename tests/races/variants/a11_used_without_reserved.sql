-- A11: under the lock, but with what is used alone: a budget that is checked and not reserved.
create or replace function agentmesh.reserve(me agentmesh.agents, session agentmesh.sessions, model text, address text, bytes bigint, answer bigint,
  listed_in numeric, listed_out numeric) returns jsonb
language plpgsql as $$
declare
  mine record;
begin
  insert into agentmesh.session_usage (session_id) values (session.id) on conflict do nothing;
  perform from agentmesh.session_usage u where u.session_id = session.id for no key update;
  select * into mine from agentmesh.weigh(me, session, address, bytes / 4, answer, listed_in, listed_out);
  return jsonb_build_object('refused', mine.refused, 'waits', mine.waits, 'answer', mine.allowed);
end $$;
