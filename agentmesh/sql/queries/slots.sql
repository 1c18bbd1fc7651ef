-- name: take
-- May this agent call its model now? Null: yes.
select agentmesh.take_slot(%(agent)s, %(model)s, %(key)s, %(tokens)s, %(slots)s, %(patience)s);

-- name: leave
-- Its call is over, or it gave up.
select agentmesh.leave_slot(%(agent)s);
