create view agentmesh.open_waits as
  select w.waiter, w.target
  from agentmesh.waits w
  join agentmesh.wait h on h.waiter = w.waiter and h.deadline > clock_timestamp()
  join agentmesh.agents a on a.id = w.target and a.status = 'running'
  where not exists (select from agentmesh.mail m where m.recipient = w.waiter and m.sender = w.target and not m.automatic
                    and m.read_at is null and m.withdrawn_at is null offset 0);

comment on view agentmesh.open_waits is
  'Edges of waits that are not met yet: the waiter has no message of a target that still runs. Reports do not count: a running target that reported earlier is working on something newer. "offset 0": one index look-up per target. As a join, planned while the mailbox was empty, it would go through all unread mail for each target, and 10,000 targets would take seconds.';
