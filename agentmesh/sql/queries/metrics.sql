-- name: mesh
-- The whole mesh in a few figures, for monitoring: waits, agents without a worker, mail that running agents have not read,
-- and how full the queue of notifications is. "offset 0": look up the mail of each running agent. Otherwise the planner
-- would read all unread mail, and dead agents never read theirs.
select (select count(*) from agentmesh.wait) as waits, q.agents as queued_agents, q.seconds as queued_seconds,
  u.mails as unread_mail, u.seconds as unread_seconds, pg_notification_queue_usage() as notify_queue
from (
  select count(*) as agents, coalesce(extract(epoch from clock_timestamp() - min(a.queued_at)), 0)::double precision as seconds
  from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external
    and not exists (select from agentmesh.wait w where w.waiter = a.id)) q
cross join (
  select coalesce(sum(m.n), 0)::bigint as mails, coalesce(extract(epoch from clock_timestamp() - min(m.first)), 0)::double precision as seconds
  from agentmesh.agents a cross join lateral (
    select count(*) as n, min(x.sent_at) as first from agentmesh.mail x
    where x.recipient = a.id and x.read_at is null and x.withdrawn_at is null offset 0) m
  where a.status = 'running') u;
