create function agentmesh.notify_agent(agent uuid, session uuid, what text) returns void
language plpgsql as $$
begin
  perform pg_notify('agent_event_' || agent, what), pg_notify('session_event_' || session, what || ' ' || agent);
end $$;

comment on function agentmesh.notify_agent is 'Send a hint to the agent''s owner and to screens; it is delivered with the commit.';

create function agentmesh.notify_work(session uuid) returns void
language plpgsql as $$
begin
  perform pg_notify('agentmesh_work', session::text);
end $$;

create function agentmesh.notify_waiters(targets uuid[]) returns void
language plpgsql as $$
begin
  perform pg_notify('agent_event_' || w.waiter, 'waited') from (select distinct waiter from agentmesh.waits where target = any (targets)) w;
end $$;

comment on function agentmesh.notify_waiters is 'Tell all agents that wait for one of these agents to look again.';
