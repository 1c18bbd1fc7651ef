-- name: begin_capture
-- Begin a capture; whether there was none.
select agentmesh.begin_capture(%(agent)s);

-- name: capture
-- Keep a text that no model sees; its seq.
select agentmesh.capture(%(agent)s, %(text)s);

-- name: cancel_capture
-- End a capture.
select agentmesh.cancel_capture(%(agent)s);

-- name: fork_captured
-- Make a child of what was captured; the child.
select agentmesh.fork_captured(%(parent)s, %(name)s);

-- name: captured
-- What the open capture of an agent holds; no rows both for nothing captured and for no capture.
select content ->> 'text' from agentmesh.transcript
where agent_id = %(agent)s and kind = 'capture' and seq > agentmesh.open_capture(%(agent)s) order by seq;

-- name: is_capturing
-- Whether a capture of an agent is open.
select agentmesh.open_capture(%(agent)s) is not null;

-- name: note
-- Keep a command and what it said; the row's seq.
select agentmesh.note(%(agent)s, %(content)s);

-- name: see
-- Note that a person has looked at the end of the last turn; whether that was new.
select agentmesh.see(%(agent)s);

-- name: retry
-- Run again after an error.
select agentmesh.retry(%(agent)s);

-- name: take_back
-- Withdraw an unread message of the user; its text.
select agentmesh.take_back(%(mail)s);

-- name: set_model
-- Another model from the next turn on.
select agentmesh.set_model(%(agent)s, %(model)s);

-- name: set_settings
-- Another system prompt or other tools from the next turn on.
select agentmesh.set_settings(%(agent)s, %(system_prompt)s, %(tools)s, %(what)s);

-- name: rename_session
-- Another title.
select agentmesh.rename_session(%(session)s, %(title)s);
