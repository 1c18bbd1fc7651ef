-- name: pause
-- Let all workers leave a model alone for a while.
select agentmesh.pause(%(provider)s, %(model)s, %(seconds)s, %(reason)s, %(set_by)s);

-- name: current
-- The pauses that go on, and for how long.
select provider, model, extract(epoch from until - clock_timestamp())::double precision as seconds, reason
from agentmesh.pauses where until > clock_timestamp();
