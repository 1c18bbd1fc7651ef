-- name: hold
-- May this agent call its model now? Null or 0: yes.
select agentmesh.hold_prefix(%(key)s, %(agent)s, %(model)s, %(after)s, %(seconds)s, %(lasts)s);

-- name: warm
-- The agent that went first is answered, or gave up.
select agentmesh.warm_prefix(%(key)s, %(agent)s, %(is_warm)s);
