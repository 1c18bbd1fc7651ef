-- A12: a sender looks for the recipient's wait without the recipient's lock. A wait that is about to be committed has not
-- seen the mail, and the sender does not see the wait: nobody rings.
create or replace function agentmesh.send(sender uuid, recipient uuid, body text, key text default null, caller agentmesh.caller default null,
  images jsonb default null, urgent boolean default false, reply_to bigint default null) returns bigint
language plpgsql as $$
begin
  return agentmesh.deliver((select a from agentmesh.agents a where a.id = send.recipient), send.sender, send.body, send.key);
end $$;
