drop view agentmesh.v_stuck, agentmesh.v_timeline, agentmesh.v_cost, agentmesh.v_waits, agentmesh.v_transcript, agentmesh.v_mail, agentmesh.v_agents;
drop function agentmesh.path, agentmesh.ancestors, agentmesh.lineage;
do $$
begin
  if exists (select from pg_roles where rolname = 'agentmesh_reader') then
    revoke all on all functions in schema agentmesh from agentmesh_reader;
    revoke usage on schema agentmesh from agentmesh_reader;
  end if;
end $$;
grant execute on all functions in schema agentmesh to public;
