-- name: pending
-- The requests of a session that wait for a person, oldest first.
select id, session_id, agent_id, name, path, kind, tool, arguments, reason, rules, question, options, agents, state, asked_at, answer, answered_at, answered_by
from agentmesh.v_requests where session_id = %(session)s and state = 'pending' order by asked_at, id;

-- name: everywhere
-- The requests of all sessions that wait for a person, oldest first. An index has only these.
select id, session_id, agent_id, name, path, kind, tool, arguments, reason, rules, question, options, agents, state, asked_at, answer, answered_at, answered_by
from agentmesh.v_requests where id = any (array(
  select r.id from agentmesh.requests r where r.answered_at is null and r.cancelled_at is null)) order by asked_at, id;

-- name: matches
-- Requests whose id is or begins with this.
select id, session_id, agent_id, name, path, kind, tool, arguments, reason, rules, question, options, agents, state, asked_at, answer, answered_at, answered_by
from agentmesh.v_requests where id between %(first)s and %(last)s order by asked_at desc limit 20;

-- name: answer
-- Answer a request.
select agentmesh.answer(%(request)s, %(answer)s, %(by)s);

-- name: set_attended
-- Set whether anybody can answer requests of a session.
select agentmesh.set_attended(%(session)s, %(attended)s);

-- name: rules
-- The rules that a person has allowed for a whole session, in the order of their places.
select rules from agentmesh.sessions where id = %(session)s;

-- name: allow
-- Allow what rules match for a whole session; return how many rules are new.
select agentmesh.allow(%(session)s, %(rules)s);

-- name: forget_rules
-- Withdraw one rule of a session, or all; return how many were removed.
select agentmesh.forget_rules(%(session)s, %(place)s);
