create view agentmesh.v_waits with (security_barrier) as
  select a.session_id, h.waiter, a.name as waiter_name, w.target, b.name as target_name, b.status as target_status,
    exists (select from agentmesh.mail m where m.recipient = h.waiter and m.sender = w.target and not m.automatic
            and m.read_at is null and m.withdrawn_at is null) as received,
    h.started_at, h.deadline
  from agentmesh.wait h
  join agentmesh.agents a on a.id = h.waiter
  left join agentmesh.waits w on w.waiter = h.waiter
  left join agentmesh.agents b on b.id = w.target;

comment on view agentmesh.v_waits is
  'All current waits and their targets; target null: a message from anyone. received: unread mail from the target is in the mailbox.';
