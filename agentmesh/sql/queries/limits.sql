-- name: view
-- The limits of a session besides its budget, and how much of each is used.
select name, cap, used from agentmesh.v_limits where session_id = %(session)s order by n;

-- name: set
-- Change limits of a session.
select agentmesh.set_limits(%(session)s, %(changes)s);

-- name: of_call
-- Whether a model call that has waited may still send a request, and for how long.
select agentmesh.call_limits(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);
