-- A12: any unread mail of the sender silences its next. A report that ends no wait then hides the message that does.
create or replace function agentmesh.can_end_wait(recipient uuid, mail_id bigint, sender uuid, automatic boolean) returns boolean
language sql as $$
  select exists (select from agentmesh.wait w where w.waiter = can_end_wait.recipient)
    and not exists (select from agentmesh.mail m where m.recipient = can_end_wait.recipient and m.sender is not distinct from can_end_wait.sender
      and m.id <> can_end_wait.mail_id and m.read_at is null)
$$;
