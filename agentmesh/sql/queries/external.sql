-- name: guest
-- Return an external agent below a session's root that a client may join as.
select agentmesh.guest(%(session)s, %(name)s);

-- name: join
-- Join as an external agent; return its epoch.
select agentmesh.join_agent(%(worker)s, %(agent)s);

-- name: leave_wait
-- End a wait without its result; return whether there was one.
select agentmesh.wait_leave(%(waiter)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);
