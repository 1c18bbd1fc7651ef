-- A1: the sender's own row is locked (the fence), and then the verb locks what it needs. Two agents that send to each
-- other deadlock.
create or replace function agentmesh.send(sender uuid, recipient uuid, body text, key text default null, caller agentmesh.caller default null,
  images jsonb default null, urgent boolean default false, reply_to bigint default null)
returns bigint
language plpgsql as $$
declare
  to_agent agentmesh.agents;
begin
  perform agentmesh.lock_agents(array[sender]);
  select * into to_agent from agentmesh.lock_agents(array[recipient]);
  return agentmesh.deliver(to_agent, sender, body);
end $$;
