create view agentmesh.v_batch_items with (security_barrier) as
  select b.session_id, i.parent, i.seq, i.ordinal, i.place, i.item, i.state, i.child, c.name as child_name, i.result
  from agentmesh.batch_items i
  join agentmesh.batches b on b.parent = i.parent and b.seq = i.seq and b.ordinal = i.ordinal
  left join agentmesh.agents c on c.id = i.child;

comment on view agentmesh.v_batch_items is
  'The items of batches, by their place: state (queued, running, done or failed), the sub-agent, and its whole result, which the call''s result may have cut.';
