-- name: learn
-- Tell all workers the capabilities of a model server.
select agentmesh.learn_capability(%(provider)s, %(address)s, %(model)s, %(facts)s, %(set_by)s);

-- name: current
-- The capabilities of model servers; after a month a server may be another one.
select provider, address, model, streams, needs_choice, forced_calls, slots, context_window, caches
from agentmesh.capabilities where at > clock_timestamp() - interval '30 days';
