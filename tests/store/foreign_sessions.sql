-- 1,000 sessions of other people with 11 agents each, and more than 100,000 rows in each table that grows.
set session_replication_role = replica;
insert into agentmesh.settings values (repeat('0', 64), '', '[]');
create temp table s as select gen_random_uuid() as id, gen_random_uuid() as root, n from generate_series(1, 1000) n;
create temp table a as select gen_random_uuid() as id, s.id as session, s.root, k as n from s, generate_series(1, 10) k;
insert into agentmesh.sessions (id, workdir, host, os_user, root_id) select id, '/w', 'elsewhere', 'somebody', root from s;
insert into agentmesh.workspaces (id, session_id, kind, state, path, host, os_user, ready_at) select id, id, 'shared', 'ready', '/w', 'elsewhere', 'somebody', now() from s;
insert into agentmesh.workers (host, os_user, pid, providers, concurrency, backend_pid, seen_at) values ('elsewhere', 'somebody', 1, '{other}', 1, 1, 'infinity');
insert into agentmesh.agents (id, session_id, name, depth, status, settings_id, model, worker_id, workspace_id)
  select root, id, 'root', 0, 'running', repeat('0', 64), 'other/x', (select id from agentmesh.workers where host = 'elsewhere'), id from s;
insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, died_at, settings_id, forked_at, model, workspace_id)
  select id, session, root, 'child-' || n, 1, case when n % 2 = 0 then 'dead' else 'idle' end, case when n % 2 = 0 then now() end,
    repeat('0', 64), 0, 'other/x', session from a;
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
insert into agentmesh.workspaces (id, session_id, kind, origin, state, path, host, os_user, repository, base, head, ready_at)
  select id, session, 'own', session, 'ready', '/t', 'elsewhere', 'somebody', '/w/.git', repeat('0', 40), repeat('1', 40), now() from a;
insert into agentmesh.snapshots (workspace_id, agent_id, seq, ordinal, kind, tree, before, ref, files, made_at)
  select id, id, seq, 0, 'call', repeat('1', 40), repeat('0', 40), 'refs/x', 2, now() from a, generate_series(1, 11) seq;
insert into agentmesh.changes (snapshot_id, n, workspace_id, path, status, added, removed)
  select s.id, n, s.workspace_id, 'src/file-' || n, 'changed', 1, 1 from agentmesh.snapshots s, generate_series(1, 2) n;
insert into agentmesh.merges (session_id, source, target, source_agent, target_agent, is_up, base, ours, theirs, result, base_before, state, ended_at)
  select session, id, session, id, root, true, repeat('0', 40), repeat('0', 40), repeat('1', 40), repeat('1', 40), repeat('0', 40), 'done', now()
  from a, generate_series(1, 11);
insert into agentmesh.conflicts (a, b, path, second) select least(id, session), greatest(id, session), 'src/file-' || k, id from a, generate_series(1, 11) k;
insert into agentmesh.leases (workspace_id, prefix, agent_id) select session, 'src/' || n, id from a;
insert into agentmesh.waits (waiter, target) select root, id from a;
insert into agentmesh.timers (session_id, sender, recipient, body, due_at, ended_at, ended_as)
  select session, root, id, 'x', now(), now(), 'rung' from a, generate_series(1, 11);
insert into agentmesh.todos (session_id, content, created_by, status, owner, claimed_at, done_at)
  select session, 'x', root, 'done', id, now(), now() from a, generate_series(1, 11);
insert into agentmesh.todos (session_id, content, owner, status, claimed_at) select session, 'x', root, 'claimed', now() from a;
insert into agentmesh.todos (session_id, content) select session, 'x' from a;
insert into agentmesh.timers (session_id, sender, recipient, body, due_at) select session, root, id, 'x', now() + interval '1 day' from a;
insert into agentmesh.timers (session_id, sender, recipient, body, due_at, cron, key)
  select session, root, id, 'x', now() + interval '1 day', '0 9 * * * UTC', 'k' from a;
insert into agentmesh.forms (agent_id, schema) select id, '{"type": "object"}' from a;
insert into agentmesh.batches (parent, seq, ordinal, session_id, spec, side, items, started, done, ended_at)
  select id, seq, 0, session, '{}', 1, 1, 1, 1, now() from a, generate_series(1, 11) seq;
insert into agentmesh.batch_items (parent, seq, ordinal, place, item, state, child, result)
  select id, seq, 0, 1, 'x', 'done', id, '{}' from a, generate_series(1, 11) seq;
insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command, state, exit_code, ended_at)
  select session, row_number() over (partition by session), id, k, 0, 1, 'x', 'exited', 0, now() from a, generate_series(1, 11) k;
insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command)
  select session, 1000 + n, id, 99, 0, (select id from agentmesh.workers where host = 'elsewhere'), 'x' from a;
insert into agentmesh.moves (session_id, destination, departed_at, arrived_at) select gen_random_uuid(), 'x', now(), now() from generate_series(1, 110000);
insert into agentmesh.arrivals (id, session_id, source, unpacked_at) select gen_random_uuid(), gen_random_uuid(), 'x', now() from generate_series(1, 110000);
set session_replication_role = origin;
