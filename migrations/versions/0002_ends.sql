alter table agentmesh.agents
  add column ended_as text,                                 -- how its last turn ended
  add column unseen boolean not null default false;         -- a person asked for that turn, and has not looked at its end

update agentmesh.agents a
set ended_as = case
  when t.kind = 'assistant' then 'done'
  when t.kind = 'event' then 'interrupted'
  when t.content ->> 'kind' = 'limit' then 'out of budget'
  else 'failed' end
from agentmesh.transcript t where t.agent_id = a.id and t.seq = a.ended_seq;

create or replace function agentmesh.agent_is_sound(a agentmesh.agents) returns boolean
language plpgsql immutable as $$
-- One function in place of a CHECK for each line: PostgreSQL reads and plans every CHECK anew for each statement
-- that writes the table, which was half of what a step's write of its agent cost.
begin
  return a.status in ('running', 'idle', 'dead')
    and (a.status = 'dead') = (a.died_at is not null)
    and (a.status = 'dead' or (a.reaped_at is null and a.killed_by is null))
    and (a.status = 'running' or a.worker_id is null)
    and a.turn >= 0 and a.started_turn <= a.turn                               -- a turn starts once
    and (a.parent_id is null) = (a.depth = 0) and a.depth >= 0
    and (a.parent_id is null) = (a.name = 'root')
    and (a.parent_id is null) = (a.forked_at is null) and coalesce(a.forked_at >= 0, true)
    and coalesce(a.ended_as in ('done', 'failed', 'out of budget', 'interrupted'), true)
    and (a.ended_as is null) = (a.ended_seq is null) and not (a.unseen and a.ended_as is null)
    and coalesce(not a.clean or a.forked_at = 0, true)                         -- the clean inherit nothing
    and a.name ~ '^[a-z0-9][a-z0-9_.-]{0,31}$' and a.name not in ('parent', 'user', 'all');
end $$;

create index sessions_open on agentmesh.sessions (created_at desc) where ended_at is null;
create index agents_ended on agentmesh.agents (session_id, ended_as, created_at, id) where status = 'idle' and (unseen or ended_as <> 'done');
