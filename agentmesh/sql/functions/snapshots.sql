create function agentmesh.add_snapshot(workspace uuid, agent uuid, seq bigint, ordinal integer, kind text, snapshot jsonb, merge bigint, at timestamptz)
returns bigint
language plpgsql as $$
#variable_conflict use_column
-- The workspace is locked. Times of a workspace's snapshots never go back, so that the newest by a moment is the newest.
-- Two agents of one directory may store snapshots in another order than they took them: a snapshot does not become the
-- newest if its successor is stored already. What others had changed before a call is stored when the call ends: it
-- becomes the newest only if nothing was stored meanwhile. Others are late: the workspace never had just what they have.
declare
  it agentmesh.workspaces;
  new_id bigint;
  is_late boolean;
begin
  select * into it from agentmesh.workspaces w where w.id = add_snapshot.workspace;
  is_late := it.head is distinct from snapshot ->> 'before' and (add_snapshot.kind = 'outside' or exists (
    select from (select s.before from agentmesh.snapshots s where s.workspace_id = it.id order by s.id desc limit 20) s
    where s.before = snapshot ->> 'tree'));
  insert into agentmesh.snapshots as n (workspace_id, agent_id, seq, ordinal, kind, late, tree, before, ref, files, added, removed, left_out, merge_id, made_at)
  values (it.id, add_snapshot.agent, add_snapshot.seq, add_snapshot.ordinal, add_snapshot.kind, is_late, snapshot ->> 'tree', snapshot ->> 'before', snapshot ->> 'ref',
    coalesce((snapshot ->> 'files')::integer, jsonb_array_length(snapshot -> 'changes'), 0), coalesce((snapshot ->> 'added')::bigint, 0),
    coalesce((snapshot ->> 'removed')::bigint, 0), coalesce(jsonb_path_query_array(snapshot, '$.left_out[0 to 199]'), '[]'), add_snapshot.merge,
    greatest(add_snapshot.at, (select max(s.made_at) from agentmesh.snapshots s where s.workspace_id = it.id)))
  returning n.id into new_id;
  insert into agentmesh.changes (snapshot_id, n, workspace_id, path, status, added, removed)
  select new_id, c.n, it.id, c.item ->> 0, c.item ->> 1, (c.item ->> 2)::integer, (c.item ->> 3)::integer
  from jsonb_array_elements(snapshot -> 'changes') with ordinality c (item, n) where c.n <= 2000;
  if not is_late then
    update agentmesh.workspaces w set head = snapshot ->> 'tree' where w.id = it.id and w.head is distinct from snapshot ->> 'tree';
  end if;
  return new_id;
end $$;

comment on function agentmesh.add_snapshot is
  'Store a snapshot of a locked workspace: {"tree", "before", "ref", "files", "added", "removed", "left_out": [...], "changes": [[path, status, added, removed], ...]}. Returns its id.';

create function agentmesh.note_snapshots(me agentmesh.agents, seq bigint, results jsonb) returns void
language plpgsql as $$
-- Changes from before the step, by nobody here, were there when the step began: they get the time of the row before.
declare
  taken record;
  brought jsonb;
begin
  perform agentmesh.lock_workspaces(array[me.workspace_id]);
  for taken in
    select r.ordinal, r.snapshot, t.created_at as at, coalesce(b.created_at, me.created_at) as before_step
    from jsonb_to_recordset(results) as r (ordinal integer, snapshot jsonb)
    join agentmesh.tool_calls c on c.agent_id = me.id and c.seq = note_snapshots.seq and c.ordinal = r.ordinal and c.status = 'done'
    join agentmesh.transcript t on t.agent_id = me.id and t.seq = c.result_seq
    left join agentmesh.transcript b on b.agent_id = me.id and b.seq = note_snapshots.seq - 1
    where r.snapshot is not null and not exists (
      select from agentmesh.snapshots s where s.agent_id = me.id and s.seq = note_snapshots.seq and s.ordinal = r.ordinal)
    order by r.ordinal
  loop
    for brought in
      select o.item from jsonb_path_query(taken.snapshot, '$.outside[*]') with ordinality o (item, n)
      where not exists (
        select from (select s.ref, s.tree from agentmesh.snapshots s where s.workspace_id = me.workspace_id order by s.id desc limit 20) s
        where s.ref = o.item ->> 'ref' and s.tree = o.item ->> 'tree')  -- the same again, by a call that changed nothing itself
      order by o.n
    loop
      perform agentmesh.add_snapshot(me.workspace_id, null, null, null, 'outside', brought, null, taken.before_step);
    end loop;
    continue when taken.snapshot ->> 'tree' is null;
    perform agentmesh.add_snapshot(me.workspace_id, me.id, note_snapshots.seq, taken.ordinal, 'call', taken.snapshot, null, taken.at);
    update agentmesh.agents a set lines_added = a.lines_added + coalesce((taken.snapshot ->> 'added')::bigint, 0),
      lines_removed = a.lines_removed + coalesce((taken.snapshot ->> 'removed')::bigint, 0)
    where a.id = me.id;
  end loop;
end $$;

comment on function agentmesh.note_snapshots is
  'Store the snapshots that came with results of calls of one step, [{"ordinal", "snapshot"}], for an agent whose row is locked; each once. "outside" in a snapshot are others, [...], of what others had changed before a call; without "tree" there are only these.';

create function agentmesh.record_snapshot(workspace uuid, kind text, snapshot jsonb, agent uuid default null, caller agentmesh.caller default null,
  said text default null, undoes bigint[] default '{}', redoes bigint[] default '{}') returns bigint
language plpgsql as $$
#variable_conflict use_column
declare
  me agentmesh.agents;
  it agentmesh.workspaces;
  last agentmesh.snapshots;
  new_id bigint;
begin
  perform agentmesh.require_read_committed();
  if record_snapshot.kind is null or record_snapshot.kind not in ('base', 'outside', 'undo', 'redo', 'final') then
    perform agentmesh.refuse('AM004', format('%s is no kind of snapshot', quote_nullable(left(kind, 60))), 'Give base, outside, undo, redo or final.');
  elsif record_snapshot.kind = 'outside' and record_snapshot.agent is not null then
    perform agentmesh.refuse('AM004', 'what came from outside is no agent''s work', 'Leave the agent out.');
  end if;
  perform agentmesh.require_tree(snapshot ->> 'tree');
  if record_snapshot.agent is not null then
    select * into me from agentmesh.lock_agents(array[record_snapshot.agent]);
    perform agentmesh.require_agent(me, record_snapshot.agent);
    if (record_snapshot.caller).worker_id is not null then
      perform agentmesh.fence(me, record_snapshot.caller);
    end if;
  end if;
  perform agentmesh.lock_workspaces(array(
    select record_snapshot.workspace
    union
    select unnest(array[m.source, m.target]) from agentmesh.merges m where m.id = any (undoes || redoes)));
  select * into it from agentmesh.workspaces w where w.id = record_snapshot.workspace;
  perform agentmesh.require_workspace(it, record_snapshot.workspace);
  select * into last from agentmesh.snapshots s where s.workspace_id = it.id order by s.id desc limit 1;
  if (last.kind, last.tree::text, last.before::text, last.ref) is not distinct from
     (record_snapshot.kind, snapshot ->> 'tree', snapshot ->> 'before', snapshot ->> 'ref') and last.agent_id is not distinct from record_snapshot.agent then
    return last.id;  -- the same again
  elsif it.head is distinct from snapshot ->> 'before' then
    perform agentmesh.refuse('AM081', 'the files have a newer snapshot', 'Look again, and take another one.');
  elsif it.state in ('removing', 'removed') then
    perform agentmesh.refuse('AM081', 'the files are being removed, or are gone', 'Their newest snapshot stays.');
  end if;
  new_id := agentmesh.add_snapshot(it.id, record_snapshot.agent, null, null, record_snapshot.kind, snapshot, null, clock_timestamp());
  perform agentmesh.undo_merges(it.id, undoes, new_id);
  perform agentmesh.redo_merges(it.id, redoes);
  if said is not null and me.status <> 'dead' then
    perform agentmesh.append_and_tell(me, 'event', jsonb_build_object('event', case record_snapshot.kind when 'redo' then 'files_redone' else 'files_undone' end,
      'text', said, 'snapshot', new_id));
  end if;
  return new_id;
end $$;

comment on function agentmesh.record_snapshot is
  'Store a snapshot that belongs to no call: base, outside, undo, redo or final. It begins at the workspace''s newest. agent: whose work it is; said: an event for its transcript. undoes and redoes: merges whose files are gone, or are back. Returns its id; the same again returns the same.';

create function agentmesh.moment(agent uuid, "row" bigint) returns setof agentmesh.snapshots
language plpgsql stable rows 1 as $$
#variable_conflict use_column
-- The newest by time, or the agent's own newest if that is newer: its row may have been given its time a moment before.
declare
  me agentmesh.agents;
  boundary bigint;
  moment_at timestamptz;
  found_id bigint;
begin
  select * into me from agentmesh.agents a where a.id = moment.agent;
  perform agentmesh.require_agent(me, moment.agent);
  boundary := agentmesh.step_boundary(me, moment."row");
  moment_at := coalesce((select t.created_at from agentmesh.transcript t where t.agent_id = me.id and t.seq = boundary), me.created_at);
  found_id := greatest(
    (select s.id from agentmesh.snapshots s where s.workspace_id = me.workspace_id and not s.late and s.made_at <= moment_at order by s.made_at desc, s.id desc limit 1),
    (select s.id from agentmesh.snapshots s join agentmesh.tool_calls c on c.agent_id = s.agent_id and c.seq = s.seq and c.ordinal = s.ordinal
     where s.agent_id = me.id and s.workspace_id = me.workspace_id and not s.late and c.result_seq <= boundary order by s.id desc limit 1));
  return query select * from agentmesh.snapshots s
    where s.id = coalesce(found_id, (select f.id from agentmesh.snapshots f where f.workspace_id = me.workspace_id order by f.id limit 1));
end $$;

comment on function agentmesh.moment is
  'The snapshot of what an agent''s workspace had at a row of the agent''s, or before the step that has the row. It is the first one if there was none by then. No row if there is none at all.';

create function agentmesh.tree_at(agent uuid, "row" bigint) returns text
language plpgsql stable as $$
declare
  it agentmesh.snapshots;
begin
  select * into it from agentmesh.moment(agent, "row");
  if it.freed_at is not null then
    perform agentmesh.refuse('AM085', format('the files at row %s are not kept any more', "row"),
      'Keep more of them: keep in [workspace] of the configuration. Or let the fork work in the shared directory.');
  end if;
  return it.tree;
end $$;

comment on function agentmesh.tree_at is
  'The tree that an agent''s workspace had at a row of the agent''s; null if no snapshot was ever taken there; refused if it was freed.';

create function agentmesh.free_snapshots(ids bigint[]) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform agentmesh.require_read_committed();
  update agentmesh.snapshots s set freed_at = clock_timestamp() where s.id = any (free_snapshots.ids) and s.freed_at is null;
end $$;

comment on function agentmesh.free_snapshots is 'The refs of these snapshots are about to be given up: from now on no row promises their trees.';
