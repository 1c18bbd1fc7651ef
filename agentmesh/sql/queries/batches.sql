-- name: batch
-- Hand a call to one sub-agent for each item; return how many run now.
select agentmesh.batch(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(spec)s, %(side)s);
