-- name: pause
-- Make all workers leave a model alone for a while.
select agentmesh.pause(%(provider)s, %(model)s, %(seconds)s, %(reason)s, %(set_by)s);

-- name: current
-- The current pauses, and how long they last.
select provider, model, extract(epoch from until - clock_timestamp())::double precision as seconds, reason
from agentmesh.pauses where until > clock_timestamp();
