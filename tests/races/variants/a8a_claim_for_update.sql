-- A8 (a): claim locks FOR UPDATE, which conflicts with the key-share lock of every foreign key check.
create or replace function agentmesh.claim(worker bigint, slots integer, waits boolean default true) returns setof agentmesh.agents
language sql as $$
  with free as (
    select a.id from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external
    order by a.queued_at limit slots for update skip locked)
  update agentmesh.agents a set worker_id = worker, epoch = a.epoch + 1 from free where a.id = free.id returning a.*
$$;
