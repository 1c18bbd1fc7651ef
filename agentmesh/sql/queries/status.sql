-- name: activity
-- Store the activities of agents. Asynchronous: losing it does no harm.
insert into agentmesh.activity (agent_id, activity, at)
select u.id, u.activity, clock_timestamp() from unnest(%(ids)s::uuid[], %(activities)s::text[]) as u (id, activity)
where exists (select from agentmesh.agents a where a.id = u.id)
on conflict (agent_id) do update set activity = excluded.activity, at = excluded.at;

-- name: publish
-- Send payloads to channels, in one commit.
select pg_notify(u.channel, u.payload) from unnest(%(channels)s::text[], %(payloads)s::text[]) as u (channel, payload);
