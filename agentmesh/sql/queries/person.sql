-- name: begin_capture
-- Begin a capture; return false if one was open already.
select agentmesh.begin_capture(%(agent)s);

-- name: capture
-- Keep a text that no model sees; return its seq.
select agentmesh.capture(%(agent)s, %(text)s);

-- name: cancel_capture
-- End a capture.
select agentmesh.cancel_capture(%(agent)s);

-- name: fork_captured
-- Make a child with the captured text as its prompt; return the child.
select agentmesh.fork_captured(%(parent)s, %(name)s);

-- name: captured
-- The texts of an agent's open capture; no rows if nothing was captured or no capture is open.
select content ->> 'text' from agentmesh.transcript
where agent_id = %(agent)s and kind = 'capture' and seq > agentmesh.open_capture(%(agent)s) order by seq;

-- name: is_capturing
-- Whether a capture of an agent is open.
select agentmesh.open_capture(%(agent)s) is not null;

-- name: note
-- Keep a command and its result; return the row's seq.
select agentmesh.note(%(agent)s, %(content)s);

-- name: see
-- Note that a person has looked at the end of the last turn; whether that was new.
select agentmesh.see(%(agent)s);

-- name: retry
-- Run again after an error.
select agentmesh.retry(%(agent)s);

-- name: failed
-- The agents of a session whose last turn failed or was out of budget and can run again, the deepest first. Those that
-- ran for a task are left out: it has ended. "<> 'done'" adds nothing but the words of the index agents_ended, which the
-- planner does not use without them.
select a.id, a.name from agentmesh.agents a
where a.session_id = %(session)s and a.status = 'idle' and a.ended_as in ('failed', 'out of budget') and a.ended_as <> 'done'
  and not a.external and not a.clean and agentmesh.why_no_retry(a) is null
order by a.depth desc, a.created_at, a.id;

-- name: take_back
-- Withdraw an unread message of the user; return its text.
select agentmesh.take_back(%(mail)s);

-- name: set_model
-- Set another model, from the next turn on.
select agentmesh.set_model(%(agent)s, %(model)s);

-- name: set_settings
-- Set another system prompt or other tools, from the next turn on.
select agentmesh.set_settings(%(agent)s, %(system_prompt)s, %(tools)s, %(what)s);

-- name: rename_session
-- Set another title.
select agentmesh.rename_session(%(session)s, %(title)s);
