-- name: add_todo
-- Put something to do on the board; return its number.
select agentmesh.add_todo(%(session)s, %(agent)s, %(content)s, %(after)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: claim_todo
-- Give an open todo to an agent; return its number, null if none is ready.
select agentmesh.claim_todo(%(session)s, %(agent)s, %(todo)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: finish_todo
-- Mark a todo as done.
select agentmesh.finish_todo(%(session)s, %(agent)s, %(todo)s, %(outcome)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: release_todo
-- Give a claimed todo back.
select agentmesh.release_todo(%(session)s, %(agent)s, %(todo)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: read_todos
-- Answer a call with the board.
select agentmesh.read_todos(%(session)s, %(agent)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: shown
-- A todo, as agents read it.
select agentmesh.todo_json(%(todo)s);

-- name: shown_done
-- A todo that is done and the todos that it made ready, as agents read it.
select agentmesh.done_json(%(session)s, %(todo)s);

-- name: shown_board
-- The board, as agents read it.
select agentmesh.board_json(%(session)s);

-- name: board
-- The todos of a session: first all that are not done, then the newest of the others.
(select id, content, after, status, is_ready, owner, owner_name, created_by_name, note from agentmesh.v_todos
 where session_id = %(session)s and status in ('open', 'claimed') order by id)
union all
(select id, content, after, status, is_ready, owner, owner_name, created_by_name, note from agentmesh.v_todos
 where session_id = %(session)s and status = 'done' order by id desc limit %(done)s);
