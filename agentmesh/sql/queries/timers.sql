-- name: send_later
-- Send a message when it is due; return the timer's id.
select agentmesh.send_later(%(sender)s, %(recipient)s, %(body)s, %(at)s, %(after)s, %(every)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(cron)s, %(key)s, %(images)s::jsonb);

-- name: clock
-- The database's clock, which decides when timers are due.
select clock_timestamp();

-- name: due_crons
-- Timers of cron expressions that are due, the oldest first, and the time. Without those of agents that somebody holds:
-- the locks end with this statement, and ring_cron looks again.
select t.id, t.cron, t.due_at, greatest(t.due_at, statement_timestamp()) as now
from agentmesh.timers t cross join lateral (select from agentmesh.agents a where a.id = t.recipient for no key update skip locked) free
where t.ended_at is null and t.cron is not null and t.due_at <= statement_timestamp()
order by t.due_at, t.id limit 20;

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
