create view agentmesh.v_stuck with (security_barrier) as
  select a.session_id, a.id as agent_id, a.name, 'no worker' as problem,
    format('has waited %s s to run, and no worker may run it (host %s, user %s, model %s%s%s): start %s',
      extract(epoch from clock_timestamp() - a.queued_at)::integer, s.host, s.os_user, a.model,
      ', endpoint ' || nullif(array_to_string(agentmesh.endpoint(s.endpoints, a.model), ''), ''),
      case when s.needs <> '{}' then ', ' || array_to_string(s.needs, ', ') end,
      case when s.needs = '{}' then 'one with agentmesh worker' else 'the Python program that has them' end) as why
  from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id
  where a.status = 'running' and a.worker_id is null and not a.external
    and not exists (select from agentmesh.workers w where w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s' and agentmesh.serves(w, a))
  union all
  select a.session_id, a.id, a.name, 'not claimed',
    format('has waited %s s to run, and worker %s (pid %s on %s), which has room, does not take it: end that worker and start another',
      extract(epoch from clock_timestamp() - a.queued_at)::integer, w.id, w.pid, w.host)
  from agentmesh.agents a cross join lateral (
    select w.id, w.pid, w.host from agentmesh.workers w
    where w.ended_at is null and w.seen_at > clock_timestamp() - interval '30 s' and agentmesh.serves(w, a) and agentmesh.has_room(w)
    order by w.id limit 1) w
  where a.status = 'running' and a.worker_id is null and not a.external and a.queued_at < clock_timestamp() - interval '30 s'
  union all
  select a.session_id, a.id, a.name, 'no sign of life',
    format('worker %s (pid %s on %s) has it, and nothing was heard of it for %s: interrupt it, or end that worker',
      w.id, w.pid, w.host, date_trunc('second', clock_timestamp() - n.heard_at))
  from agentmesh.agents a join agentmesh.workers w on w.id = a.worker_id
  cross join lateral (
    select greatest(a.queued_at, w.started_at,
      (select t.created_at from agentmesh.transcript t where t.agent_id = a.id order by t.seq desc limit 1),
      (select x.at from agentmesh.activity x where x.agent_id = a.id)) as heard_at) n
  where a.status = 'running' and not a.external and n.heard_at < clock_timestamp() - interval '30 min'
    and not exists (select from agentmesh.wait h where h.waiter = a.id)
    and not exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status in ('started', 'asking', 'delegated'))
    and not exists (select from agentmesh.reservations r where r.agent_id = a.id and r.waits)
  union all
  select a.session_id, a.id, a.name, 'worker silent',
    format('worker %s (pid %s on %s) was last seen %s ago', w.id, w.pid, w.host, date_trunc('second', clock_timestamp() - w.seen_at))
  from agentmesh.agents a join agentmesh.workers w on w.id = a.worker_id
  where w.seen_at < clock_timestamp() - interval '10 s'
  union all
  select a.session_id, a.id, a.name, 'wait overdue', format('its wait should have ended %s ago', date_trunc('second', clock_timestamp() - h.deadline))
  from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter
  where h.deadline < clock_timestamp() - interval '5 s'
  union all
  select a.session_id, a.id, a.name, 'idle with mail', 'is idle although unread mail should have woken it'
  from agentmesh.agents a
  where a.status = 'idle' and not a.external and exists (
    select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null and m.id > a.held_mail)
  union all
  select a.session_id, a.id, a.name, 'held', 'was woken 25 times in a row by agents only; its mail waits for a word from a person'
  from agentmesh.agents a
  where a.status = 'idle' and a.agent_wakes >= 25 and exists (
    select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null)
  union all
  select a.session_id, a.id, a.name, 'all wait for anyone', 'every running agent of the session waits for a message from anyone: nobody is left to send one'
  from agentmesh.wait h join agentmesh.agents a on a.id = h.waiter
  where h.targets is null
    and not exists (select from agentmesh.agents b left join agentmesh.wait o on o.waiter = b.id
                    where b.session_id = a.session_id and b.status = 'running' and o.waiter is null)
    and not exists (select from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null)
    and not exists (select from agentmesh.processes p where p.session_id = a.session_id and p.state = 'running')  -- its end is mail
    and not exists (select from agentmesh.timers t where t.session_id = a.session_id and t.ended_at is null)
  union all
  select a.session_id, a.id, a.name, 'process without worker', format('the worker of its process %s has ended; the next worker that runs says so to it', p.id)
  from agentmesh.processes p join agentmesh.agents a on a.id = p.agent_id
  where p.state = 'running' and not exists (select from agentmesh.workers w where w.id = p.worker_id and w.ended_at is null);

comment on view agentmesh.v_stuck is
  'Agents that look stuck, and why. Empty if all is well. (An agent whose call waits for other calls need not show a sign of life.)';
