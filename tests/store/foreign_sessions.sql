-- 1,000 sessions of other people with 11 agents each, and more than 100,000 rows in each table that grows.
set session_replication_role = replica;
insert into agentmesh.settings values (repeat('0', 64), '', '[]');
create temp table s as select gen_random_uuid() as id, gen_random_uuid() as root, n from generate_series(1, 1000) n;
create temp table a as select gen_random_uuid() as id, s.id as session, s.root, k as n from s, generate_series(1, 10) k;
insert into agentmesh.sessions (id, workdir, host, os_user, root_id) select id, '/w', 'elsewhere', 'somebody', root from s;
insert into agentmesh.workers (host, os_user, pid, providers, concurrency, backend_pid, seen_at) values ('elsewhere', 'somebody', 1, '{other}', 1, 1, 'infinity');
insert into agentmesh.agents (id, session_id, name, depth, status, settings_id, model, worker_id)
  select root, id, 'root', 0, 'running', repeat('0', 64), 'other/x', (select id from agentmesh.workers where host = 'elsewhere') from s;
insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, died_at, settings_id, forked_at, model)
  select id, session, root, 'child-' || n, 1, case when n % 2 = 0 then 'dead' else 'idle' end, case when n % 2 = 0 then now() end,
    repeat('0', 64), 0, 'other/x' from a;
insert into agentmesh.transcript (agent_id, seq, kind, content)
  select id, seq, case when seq % 2 = 0 then 'assistant' else 'user' end, '{"text": "x"}' from a, generate_series(1, 12) seq;
insert into agentmesh.mail (session_id, sender, recipient, body, read_at, read_seq)
  select session, root, id, 'x', now(), 1 from a, generate_series(1, 11);
insert into agentmesh.mail (session_id, sender, recipient, body) select session, root, id, 'x' from a;
insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments, status, ended_at, result_seq)
  select id, seq, 0, 'x', 'x', '{}', 'done', now(), 1 from a, generate_series(1, 11) seq;
insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments) select root, 1, 0, 'x', 'x', '{}' from s;
insert into agentmesh.requests (session_id, agent_id, seq, ordinal, kind, tool, arguments, answer, answered_at, answered_by)
  select session, id, seq, 0, 'approval', 'x', '{}', '{"decision": "once"}', now(), 'x' from a, generate_series(1, 11) seq;
insert into agentmesh.tasks (parent, seq, ordinal, child, max_steps, model_calls_before, tool_calls_before, tokens_before, cost_before, from_seq, ended_at, status)
  select root, n * 11 + k, 0, id, 1, 0, 0, 0, 0, 0, now(), 'completed' from a, generate_series(1, 11) k;
insert into agentmesh.file_seen (session_id, agent_id, seq, path, digest, wrote)
  select session, id, seq, '/w/f', repeat('0', 64), true from a, generate_series(1, 11) seq;
insert into agentmesh.model_calls (agent_id, turn, model) select id, 1, 'x' from a, generate_series(1, 11);
insert into agentmesh.bookings (session_id, tokens, cost_usd) select session, 1, 0 from a, generate_series(1, 3);
insert into agentmesh.session_usage (session_id) select id from s;
insert into agentmesh.reservations (agent_id, session_id, epoch, tokens, cost_usd, waits) select id, session, 0, 0, 0, n % 2 = 0 from a;
insert into agentmesh.model_bills (model) select 'other/' || n from generate_series(1, 1000) n;
insert into agentmesh.wait (waiter, targets, deadline) select root, '[]', now() + interval '1 day' from s;
insert into agentmesh.waits (waiter, target) select root, id from a;
set session_replication_role = origin;
