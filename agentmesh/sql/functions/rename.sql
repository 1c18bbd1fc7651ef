create function agentmesh.rename(agent uuid, name text) returns text
language plpgsql as $$
-- The session's row guards the names of its agents, as it does in fork.
declare
  me agentmesh.agents;
  normal text := agentmesh.normal_name(rename.name);
begin
  perform agentmesh.require_read_committed();
  perform agentmesh.lock_session((select a.session_id from agentmesh.agents a where a.id = rename.agent));
  me := agentmesh.lock_living(rename.agent);
  if me.parent_id is null then
    perform agentmesh.refuse('AM036', 'the root keeps its name', 'Give the session a title: /title.');
  elsif me.external then
    perform agentmesh.refuse('AM036', format('%s keeps its name: its client joins by it', agentmesh.label(me)), 'Let the client join under another name.');
  elsif me.name = normal then
    return normal;
  elsif exists (select from agentmesh.agents a where a.session_id = me.session_id and a.name = normal) then
    perform agentmesh.refuse('AM037', format('another agent has the name %s', quote_literal(normal)), 'Choose another name. The dead keep theirs.');
  end if;
  update agentmesh.agents a set name = normal where a.id = me.id;
  perform agentmesh.append(me.id, 'event', jsonb_build_object('event', 'renamed', 'from', me.name, 'name', normal,
    'text', format('renamed from %s to %s', me.name, normal)));
  perform pg_notify('session_event_' || me.session_id, 'renamed ' || me.id);
  return normal;
end $$;

comment on function agentmesh.rename is
  'A person gives an agent another name, by the rule of fork. Mail and waits go by ids. Its conversation keeps a row that no model sees. Returns the name.';
