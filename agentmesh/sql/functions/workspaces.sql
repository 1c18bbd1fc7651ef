create function agentmesh.lock_workspaces(ids uuid[]) returns setof agentmesh.workspaces
language sql as $$
  select * from agentmesh.workspaces where id = any (ids) order by id for no key update
$$;

comment on function agentmesh.lock_workspaces is 'Lock workspaces, by id; their agents are locked already, if they are to be.';

create function agentmesh.require_workspace(workspace agentmesh.workspaces, id uuid) returns void
language plpgsql as $$
begin
  if workspace.id is null then
    perform agentmesh.refuse('AM086', format('there is no workspace %s', coalesce(require_workspace.id::text, 'null')), 'agentmesh workspaces lists them.');
  end if;
end $$;

comment on function agentmesh.require_workspace is 'Refuse a workspace that does not exist.';

create function agentmesh.lock_workspace(workspace uuid) returns agentmesh.workspaces
language plpgsql as $$
declare
  it agentmesh.workspaces;
begin
  perform agentmesh.require_read_committed();
  select * into it from agentmesh.lock_workspaces(array[workspace]);
  perform agentmesh.require_workspace(it, workspace);
  return it;
end $$;

comment on function agentmesh.lock_workspace is 'Lock one workspace that must exist.';

create function agentmesh.require_tree(tree text) returns void
language plpgsql as $$
begin
  if tree !~ '^[0-9a-f]{40}$' then
    perform agentmesh.refuse('AM004', format('%s is no id of a tree', quote_literal(left(tree, 60))), 'Give the 40 digits that git write-tree prints.');
  end if;
end $$;

comment on function agentmesh.require_tree is 'Refuse a text that is not the id of a tree of Git''s; null is none.';

create function agentmesh.workspace_of_child(session agentmesh.sessions, parent agentmesh.agents, wanted text, tree text) returns uuid
language plpgsql as $$
-- If nobody asked for an own tree and there can be none, the child works where its parent does.
declare
  shared agentmesh.workspaces;
  planned uuid;
begin
  perform agentmesh.require_tree(tree);
  if coalesce(wanted, 'own') not in ('shared', 'own') then
    perform agentmesh.refuse('AM004', format('%s is no kind of workspace', quote_literal(left(wanted, 60))), 'Give shared or own.');
  elsif coalesce(wanted, session.workspace) = 'shared' and tree is not null then
    perform agentmesh.refuse('AM004', 'only a tree of its own begins with another tree', 'Give the workspace own, or leave base out.');
  elsif coalesce(wanted, session.workspace) = 'shared' then
    return parent.workspace_id;
  end if;
  select * into shared from agentmesh.workspaces w where w.session_id = session.id and w.kind = 'shared';
  if shared.repository is null and shared.problem is not null then
    if wanted is null then
      return parent.workspace_id;
    end if;
    perform agentmesh.refuse('AM080', 'there can be no tree of its own here: ' || shared.problem,
      'Do not retry. Fork without it: then both work in one directory. A person can make a repository there: git init.');
  end if;
  insert into agentmesh.workspaces (session_id, kind, origin, state, at_tree) values (session.id, 'own', parent.workspace_id, 'planned', tree)
  returning id into planned;
  return planned;
end $$;

comment on function agentmesh.workspace_of_child is
  'Where a new child works: in its parent''s workspace, or in a planned one of its own, to be made from a tree, or from what its parent''s has then. wanted null: what the session says.';

create function agentmesh.workspace_source(workspace uuid, out tree text, out is_fixed boolean, out origin uuid)
language plpgsql stable as $$
declare
  above agentmesh.workspaces;
begin
  select w.at_tree, w.origin into tree, origin from agentmesh.workspaces w where w.id = workspace_source.workspace;
  is_fixed := tree is not null;
  while origin is not null loop
    select * into above from agentmesh.workspaces w where w.id = workspace_source.origin;
    exit when above.state = 'ready' or tree is not null;
    tree := coalesce(above.head, above.at_tree);
    is_fixed := tree is not null;
    exit when is_fixed;
    origin := above.origin;
  end loop;
  tree := coalesce(tree, above.head);
end $$;

comment on function agentmesh.workspace_source is
  'The tree from which an own workspace is to be made; null: there is none yet. is_fixed: it was chosen before, or it is the last of files that are gone. Otherwise look at the files of origin first.';

create function agentmesh.origin_of(workspace uuid) returns uuid
language plpgsql stable as $$
declare
  above agentmesh.workspaces;
begin
  select o.* into above from agentmesh.workspaces w join agentmesh.workspaces o on o.id = w.origin where w.id = origin_of.workspace;
  while above.state in ('removing', 'removed') loop
    select * into above from agentmesh.workspaces w where w.id = above.origin;
  end loop;
  return above.id;
end $$;

comment on function agentmesh.origin_of is
  'The workspace into which the files of an own one are merged: its origin or, if that is removed, the origin of its origin.';

create function agentmesh.workspace_ready(agent uuid, caller agentmesh.caller, path text, host text, os_user text, repository text, tree text,
  ref text default null) returns agentmesh.workspaces
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  mine agentmesh.workspaces;
begin
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.fence(me, caller);
  perform agentmesh.require_tree(tree);
  select * into mine from agentmesh.lock_workspaces(array[me.workspace_id]);
  if mine.state in ('planned', 'failed') then
    perform agentmesh.add_snapshot(mine.id, null, null, null, 'base', jsonb_build_object('tree', tree, 'ref', ref), null, clock_timestamp());
    update agentmesh.workspaces w set state = 'ready', path = workspace_ready.path, host = workspace_ready.host, os_user = workspace_ready.os_user,
      repository = workspace_ready.repository, base = workspace_ready.tree, problem = null, ready_at = clock_timestamp()
    where w.id = mine.id;
    select * into mine from agentmesh.workspaces w where w.id = mine.id;
  end if;
  return mine;
end $$;

comment on function agentmesh.workspace_ready is
  'The owner of an agent has made its tree, from this tree of Git''s, which becomes its base and its first snapshot. A workspace that is ready stays as it is. Returns its row.';

create function agentmesh.workspace_failed(agent uuid, caller agentmesh.caller, problem text) returns void
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.fence(me, caller);
  perform agentmesh.lock_workspaces(array[me.workspace_id]);
  update agentmesh.workspaces w set state = 'failed', problem = left(workspace_failed.problem, 1000)
  where w.id = me.workspace_id and w.state in ('planned', 'failed');
end $$;

comment on function agentmesh.workspace_failed is 'The owner of an agent could not make its tree, and why.';

create function agentmesh.note_repository(workspace uuid, repository text, problem text) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.require_read_committed();
  update agentmesh.workspaces w set repository = note_repository.repository, problem = left(note_repository.problem, 1000)
  where w.id = note_repository.workspace and w.kind = 'shared'
    and (w.repository is distinct from note_repository.repository or w.problem is distinct from left(note_repository.problem, 1000));
end $$;

comment on function agentmesh.note_repository is 'Record the repository of a session''s directory, or why it has none.';

create function agentmesh.workspace_removing(workspace uuid) returns agentmesh.workspaces
language plpgsql as $$
#variable_conflict use_column
-- Only an agent that works in it can bring another into it: if none lives now, none ever will.
declare
  it agentmesh.workspaces := agentmesh.lock_workspace(workspace_removing.workspace);
  living text;
begin
  if it.state in ('removing', 'removed') then
    return it;
  elsif it.kind = 'shared' then
    perform agentmesh.refuse('AM087', format('%s is the directory of a session', it.path), 'Only trees that agentmesh made are removed.');
  end if;
  select string_agg(agentmesh.label(a), ', ' order by a.created_at) into living from agentmesh.agents a where a.workspace_id = it.id and a.status <> 'dead';
  if living is not null then
    perform agentmesh.refuse('AM087', 'agents work in it: ' || living, 'Merge what they did, and kill them.');
  elsif exists (select from agentmesh.merges m where m.state = 'writing' and it.id in (m.source, m.target)) then
    perform agentmesh.refuse('AM087', 'a merge with it is being written', 'Wait for its end, or run agentmesh workspaces --repair.');
  end if;
  update agentmesh.workspaces w set state = 'removing' where w.id = it.id returning w.* into it;
  return it;
end $$;

comment on function agentmesh.workspace_removing is
  'The directory of an own workspace is about to be removed; refused while a living agent works in it. Returns its row.';

create function agentmesh.workspace_removed(workspace uuid) returns agentmesh.workspaces
language plpgsql as $$
#variable_conflict use_column
declare
  it agentmesh.workspaces := agentmesh.lock_workspace(workspace_removed.workspace);
begin
  if it.state not in ('removing', 'removed') then
    perform agentmesh.refuse('AM087', format('the workspace is %s: nobody said that it would be removed', it.state), 'Say so first: workspace_removing.');
  end if;
  update agentmesh.workspaces w set state = 'removed', removed_at = clock_timestamp() where w.id = it.id and w.state = 'removing';
  return (select w from agentmesh.workspaces w where w.id = workspace_removed.workspace);
end $$;

comment on function agentmesh.workspace_removed is 'The directory of an own workspace is gone. Returns its row.';

create function agentmesh.workspace_moved(workspace uuid, path text, repository text) returns agentmesh.workspaces
language plpgsql as $$
#variable_conflict use_column
declare
  it agentmesh.workspaces := agentmesh.lock_workspace(workspace_moved.workspace);
begin
  update agentmesh.workspaces w set repository = workspace_moved.repository,
    path = case when w.kind = 'own' and w.path is not null then workspace_moved.path else w.path end
  where w.id = it.id and w.state <> 'removed';
  return (select w from agentmesh.workspaces w where w.id = workspace_moved.workspace);
end $$;

comment on function agentmesh.workspace_moved is
  'A person has moved the directory of an own workspace, or the repository of any. Returns its row.';
