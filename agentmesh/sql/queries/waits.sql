-- name: begin
-- Begin a wait; return its result if it is over at once, otherwise null.
select agentmesh.wait_begin(%(waiter)s, %(targets)s, %(timeout)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: take
-- Return the result of a registered wait if it ends now, otherwise null.
select agentmesh.wait_take(%(waiter)s, %(final)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: registered
-- The header of an agent's wait.
select waiter,
  case when targets is not null then array(select (t ->> 'id')::uuid from jsonb_array_elements(targets) t where t ->> 'id' is not null) end as targets,
  extract(epoch from deadline - clock_timestamp())::double precision as remaining
from agentmesh.wait where waiter = %(waiter)s;

-- name: still_open
-- How many of the awaited agents must still be waited for.
select count(*) from agentmesh.open_waits where waiter = %(waiter)s;

-- name: agents
-- How many agents the session has made.
select count(*) from agentmesh.agents where session_id = %(session)s;
