-- name: take
-- Take the lease that a path needs; return the lease and the agent that has it.
select prefix, agent_id, name, mine from agentmesh.take_lease(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(path)s);

-- name: held
-- The leases in a workspace.
select l.prefix, l.agent_id, a.name, false as mine from agentmesh.leases l join agentmesh.agents a on a.id = l.agent_id
where l.workspace_id = %(workspace)s order by l.prefix;

-- name: set_prefixes
-- Say below which paths a session asks for leases.
select agentmesh.set_leases(%(session)s, %(prefixes)s::text[]);
