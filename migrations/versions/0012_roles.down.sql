-- The role itself stays: it is the server's, and other databases may use it.
do $$
begin
  if exists (select from pg_roles where rolname = 'agentmesh_worker') then
    revoke all on all tables in schema agentmesh from agentmesh_worker;
    revoke all on all functions in schema agentmesh from agentmesh_worker;
    revoke usage on schema agentmesh from agentmesh_worker;
  end if;
end $$;
drop function agentmesh.grant_roles;
alter function agentmesh.delete_session(uuid) security invoker reset search_path;
