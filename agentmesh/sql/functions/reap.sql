create function agentmesh.reap(session uuid, agent uuid default null) returns integer
language plpgsql as $$
#variable_conflict use_column
declare
  hidden integer;
  one agentmesh.agents;
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.require_session(agentmesh.lock_session(reap.session), reap.session);
  if reap.agent is not null then
    select * into one from agentmesh.lock_agents(array[reap.agent]);
    if one.session_id is distinct from reap.session then
      perform agentmesh.require_agent(null, reap.agent);
    elsif one.status <> 'dead' then
      perform agentmesh.refuse('AM053', format('%s is alive', agentmesh.label(one)), 'Kill it first: only the dead are reaped.');
    end if;
  end if;
  perform agentmesh.lock_agents(array(select a.id from agentmesh.agents a
    where a.session_id = reap.session and a.status = 'dead' and a.reaped_at is null and (reap.agent is null or a.id = reap.agent)));
  update agentmesh.agents a set reaped_at = clock_timestamp()
  where a.session_id = reap.session and a.status = 'dead' and a.reaped_at is null and (reap.agent is null or a.id = reap.agent);
  get diagnostics hidden = row_count;
  perform pg_notify('session_event_' || reap.session, 'reaped');
  return hidden;
end $$;

comment on function agentmesh.reap is 'Hide the dead agents of a session (or one of them) from lists; never touches living ones. Returns how many.';
