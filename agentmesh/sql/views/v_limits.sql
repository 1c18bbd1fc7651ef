create view agentmesh.v_limits with (security_barrier) as
  select s.id as session_id, l.n, l.name, l.cap, l.used
  from agentmesh.sessions s
  cross join lateral (
    select coalesce(max(a.depth), 0) as depth, count(*) filter (where agentmesh.counts(a)) as living,
      count(*) filter (where a.status = 'running') as working, coalesce(max(a.model_calls - a.turn_calls) filter (where a.status = 'running'), 0) as calls,
      coalesce(max(extract(epoch from clock_timestamp() - a.turn_began)) filter (where a.status = 'running'), 0)::bigint as seconds
    from agentmesh.agents a where a.session_id = s.id and a.status <> 'dead') living
  cross join lateral (
    select coalesce(max(c.children), 0) as children from (
      select count(*) as children from agentmesh.agents a where a.session_id = s.id and a.status <> 'dead' and agentmesh.counts(a) and a.parent_id is not null group by a.parent_id) c) child
  cross join lateral (select count(*) - 1 as made from agentmesh.agents a where a.session_id = s.id) ever
  cross join lateral (values
    (1, 'max_depth', s.max_depth::bigint, living.depth::bigint),
    (2, 'max_children', s.max_children, child.children),
    (3, 'max_agents', s.max_agents, living.working),
    (4, 'max_living', agentmesh.most_living(s), living.living),
    (5, 'max_spawns', s.max_spawns, ever.made),
    (6, 'ask_agents', nullif(s.ask_agents, 0), null),
    (7, 'max_unread', s.max_unread, null),
    (8, 'max_turns', s.max_turns, living.calls),
    (9, 'max_turn_seconds', s.max_turn_seconds, living.seconds),
    (10, 'max_seconds', extract(epoch from s.deadline - s.created_at)::bigint, extract(epoch from clock_timestamp() - s.created_at)::bigint)) l (n, name, cap, used);

comment on view agentmesh.v_limits is
  'Limits of each session besides its budget. used: the deepest agent, the most living children, the agents that work or wait (max_agents), the most calls and seconds of a turn that goes on. cap is null if there is no limit. max_seconds: from the session''s start to its deadline, and until now.';
