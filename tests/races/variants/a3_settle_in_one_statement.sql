-- A3: the end of a turn decides and writes in one statement. It waits for the row, and then looks with the old snapshot.
create or replace function agentmesh.finish_step(agent uuid, caller agentmesh.caller, content jsonb, calls jsonb, usage jsonb) returns jsonb
language plpgsql as $$
begin
  update agentmesh.agents a set status = 'idle', worker_id = null
  where a.id = agent and a.epoch = caller.epoch
    and not exists (select from agentmesh.mail m where m.recipient = agent and m.read_at is null);
  return jsonb_build_object('seq', 1, 'status', case when found then 'idle' else 'running' end, 'allowance', null);
end $$;
