-- name: start
-- Begin a session; return its root's id.
select agentmesh.set_endpoints(agentmesh.start_session(%(workdir)s, %(host)s, %(os_user)s, %(model)s, %(system_prompt)s, %(tools)s, %(title)s,
  %(permission_mode)s, %(permissions)s, %(limits)s, %(needs)s, %(external)s, %(workspace)s, %(leases)s, %(effort)s), %(endpoints)s);

-- name: by_id
-- A session.
select id, title, workdir, host, os_user, root_id, permission_mode, created_at, ended_at, max_tokens, max_cost_usd, needs, endpoints from agentmesh.sessions where id = %(session)s;

-- name: by_prefix
-- Sessions by the beginning of their id.
select id, title, workdir, host, os_user, root_id, permission_mode, created_at, ended_at, max_tokens, max_cost_usd, needs, endpoints from agentmesh.sessions
where id between %(first)s and %(last)s order by created_at desc limit 10;

-- name: newest
-- The newest session of a directory.
select id, title, workdir, host, os_user, root_id, permission_mode, created_at, ended_at, max_tokens, max_cost_usd, needs, endpoints from agentmesh.sessions
where workdir = %(workdir)s and host = %(host)s and os_user = %(os_user)s and ended_at is null order by created_at desc limit 1;

-- name: all
-- Sessions with their figures, newest first, except those that are being erased. Only agents of the listed ones are read.
-- words: each is in the title or the directory, or begins the id, of a listed one.
select s.id, s.title, s.workdir, s.created_at, s.ended_at, s.pinned, f.agents, f.running, f.tokens, f.cost_usd, f.active_at
from (
  select * from agentmesh.sessions n where (%(workdir)s::text is null or n.workdir = %(workdir)s) and n.erasing_at is null
    and not exists (select from unnest(%(words)s::text[]) w (word)
      where position(lower(w.word) in lower(n.title || ' ' || n.workdir)) = 0 and not starts_with(n.id::text, lower(w.word)))
    and exists (select from agentmesh.agents a where a.session_id = n.id)
  order by n.created_at desc limit %(limit)s) s
cross join lateral (
  select count(*) as agents, count(*) filter (where a.status = 'running') as running,
    sum(a.input_tokens - a.cached_tokens + a.output_tokens)::bigint as tokens,
    case when sum(a.unpriced_calls) = 0 or sum(a.cost_usd) > 0 then sum(a.cost_usd) end as cost_usd,
    max(greatest(a.created_at, a.died_at, a.queued_at)) as active_at
  from agentmesh.agents a where a.session_id = s.id) f
order by s.created_at desc;

-- name: set_mode
-- Change the mode: how much tools may do without asking.
select agentmesh.set_mode(%(session)s, %(mode)s);

-- name: end
-- End a session; return how many agents died.
select agentmesh.end_session(%(session)s);

-- name: delete
-- Erase a session.
select agentmesh.delete_session(%(session)s);

-- name: reap
-- Hide the dead agents; return how many.
select agentmesh.reap(%(session)s, %(agent)s);

-- name: expired
-- Sessions of a host and user in which nothing has happened for so long, the oldest first, after the given one.
select s.id, s.title, s.workdir, s.created_at from agentmesh.sessions s
where s.created_at < now() - make_interval(secs => %(age)s) and (s.created_at, s.id) > (%(after)s, %(after_id)s) and s.host = %(host)s
  and s.os_user = %(os_user)s and s.erasing_at is null and agentmesh.may_expire(s, now() - make_interval(secs => %(age)s))
order by s.created_at, s.id limit %(limit)s;

-- name: half_erased
-- Sessions of a host and user whose erasing was cut short.
select s.id, s.title, s.workdir, s.created_at from agentmesh.sessions s
where s.erasing_at < now() - interval '1 min' and s.host = %(host)s and s.os_user = %(os_user)s order by s.created_at, s.id;

-- name: begin_erasing
-- End and mark a session that may expire; return false if it may not, or if somebody else erases it.
select agentmesh.begin_erasing(%(session)s, now() - make_interval(secs => %(age)s));

-- name: erase_some
-- Delete some rows of a marked session; return how many.
select agentmesh.erase_some(%(session)s, %(most)s);

-- name: pin
-- Keep a session for good, or no longer.
select agentmesh.pin_session(%(session)s, %(pinned)s);
