drop function agentmesh.claim(bigint, integer, boolean);

-- Claim up to so many agents that wait to run, the longest queued first; agents inside a wait need no slot and come
-- on top. It skips locked rows and waits for nothing afterwards. The worker's own row is locked first: a worker that is
-- declared dead in this instant must not own what nobody would free again.
create function agentmesh.claim(worker bigint, slots integer) returns setof agentmesh.agents
language plpgsql as $$
declare
  me agentmesh.workers;
begin
  perform agentmesh.require_read_committed();
  select * into me from agentmesh.workers w where w.id = worker and w.ended_at is null for no key update;
  if me.id is null then
    perform agentmesh.refuse('AM001', format('worker %s has been declared dead', worker), 'Register again.');
  end if;
  return query
  with queued as (
    select a.id from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external and agentmesh.serves(me, a)
      and not exists (select from agentmesh.wait w where w.waiter = a.id)
    order by a.queued_at limit slots for no key update of a skip locked),
  waiting as (
    select a.id from agentmesh.agents a where a.status = 'running' and a.worker_id is null and not a.external and agentmesh.serves(me, a)
      and exists (select from agentmesh.wait w where w.waiter = a.id)
    order by a.queued_at limit 1000 for no key update of a skip locked),
  free as (select id from queued union all select id from waiting)
  update agentmesh.agents a set worker_id = worker, epoch = a.epoch + 1 from free where a.id = free.id returning a.*;
end $$;

select agentmesh.grant_roles();
