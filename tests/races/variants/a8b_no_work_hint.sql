-- A8 (b): send hints at work only when it wakes somebody. A claim that skipped the agent because of this very send is
-- told nothing, and the agent waits for the slow tick.
create or replace function agentmesh.deliver(recipient agentmesh.agents, sender uuid, body text, key text default null,
  automatic boolean default false, failed boolean default false, images jsonb default null,
  urgent boolean default false, about text default null, reply_to bigint default null) returns bigint
language plpgsql as $$
declare
  new_id bigint;
begin
  insert into agentmesh.mail (session_id, sender, recipient, body, key, automatic, failed)
  values (recipient.session_id, deliver.sender, recipient.id, deliver.body, deliver.key, deliver.automatic, deliver.failed)
  returning id into new_id;
  perform agentmesh.wake(recipient, new_id, deliver.sender is null);
  perform agentmesh.notify_agent(recipient.id, recipient.session_id, 'mail');
  return new_id;
end $$;
