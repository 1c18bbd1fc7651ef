create view agentmesh.v_batches with (security_barrier) as
  select b.session_id, b.parent, p.name as parent_name, b.seq, b.ordinal, b.spec ->> 'description' as description, b.spec ->> 'prompt' as prompt, b.side, b.items,
    b.items - b.started as queued, b.running, b.done, b.failed, b.started_at, b.ended_at
  from agentmesh.batches b join agentmesh.agents p on p.id = b.parent;

comment on view agentmesh.v_batches is
  'Calls of task with items, and how far they are. side: how many run at once, at most. items = queued + running + done + failed.';
