create view agentmesh.v_todos with (security_barrier) as
  select t.id, t.session_id, t.content, t.after, t.status, t.status = 'open' and not exists (
      select from agentmesh.todos d where d.id = any (t.after) and d.status <> 'done') as is_ready,
    t.owner, o.name as owner_name, t.created_by, coalesce(c.name, 'user') as created_by_name, t.created_at, t.claimed_at, t.done_at, t.note
  from agentmesh.todos t left join agentmesh.agents o on o.id = t.owner left join agentmesh.agents c on c.id = t.created_by;

comment on view agentmesh.v_todos is
  'The board of a session''s work. status is open, claimed or done; is_ready: it can be claimed, because all that it comes after is done. owner works on it or did it; null of a done one is a person.';
