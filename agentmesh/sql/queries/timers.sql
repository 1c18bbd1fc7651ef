-- name: send_later
-- Send a message when it is due; return the timer's id.
select agentmesh.send_later(%(sender)s, %(recipient)s, %(body)s, %(at)s, %(after)s, %(every)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(cron)s, %(key)s, %(images)s::jsonb);

-- name: clock
-- The database's clock, which decides when timers are due.
select clock_timestamp();

-- name: due_crons
-- Timers of cron expressions that are due, the oldest first, and the time.
select id, cron, due_at, greatest(due_at, statement_timestamp()) as now from agentmesh.timers
where ended_at is null and cron is not null and due_at <= statement_timestamp() order by due_at, id limit 20;

-- name: ring_cron
-- Turn such a timer into mail, unless another worker has; return the mails.
select agentmesh.ring_cron(%(timer)s, %(due_at)s, %(next_at)s);

-- name: cancel
-- End a timer before it rings; return false if it has ended already.
select agentmesh.cancel_timer(%(timer)s, %(session)s);

-- name: pending
-- The timers of a session that have not ended, those due first before others.
select id, sender_name, recipient, recipient_name, body, due_at, every_seconds, cron, rung, state
from agentmesh.v_timers where session_id = %(session)s and ended_at is null order by due_at, id;

-- name: due_at
-- When a timer is due.
select due_at from agentmesh.timers where id = %(timer)s;

-- name: any_pending
-- Whether a timer is pending: each minimum is one look into its index.
select coalesce((select min(due_at) from agentmesh.timers where ended_at is null and cron is null),
  (select min(due_at) from agentmesh.timers where ended_at is null and cron is not null)) is not null;
