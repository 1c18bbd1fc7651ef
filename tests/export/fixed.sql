-- A small session whose every id and time is known: the root forks a reader and a runner, waits, asks a person, and kills the runner. Two hours later it
-- is asked once more.
set session_replication_role = replica;
insert into agentmesh.settings (id, system_prompt, tools) values (repeat('a', 64), 'You are an agent.', '[]');
insert into agentmesh.sessions (id, title, workdir, host, os_user, root_id, created_at) values
  ('5e550000-0000-4000-8000-000000000001', 'Count *things*', '/work', 'host', 'user', 'a0000000-0000-4000-8000-000000000001', '2026-03-01 09:00:00+00');
insert into agentmesh.workspaces (id, session_id, kind, state, path, host, os_user, created_at, ready_at) values
  ('3a000000-0000-4000-8000-000000000001', '5e550000-0000-4000-8000-000000000001', 'shared', 'ready', '/work', 'host', 'user', '2026-03-01 09:00:00+00', '2026-03-01 09:00:00+00');
alter table agentmesh.agents alter column workspace_id set default '3a000000-0000-4000-8000-000000000001';
insert into agentmesh.agents (id, session_id, parent_id, name, depth, status, model, settings_id, forked_at, turn, started_turn, tool_calls, model_calls,
    input_tokens, output_tokens, cached_tokens, cost_usd, created_at, died_at, killed_by) values
  ('a0000000-0000-4000-8000-000000000001', '5e550000-0000-4000-8000-000000000001', null, 'root', 0, 'idle', 'p/m', repeat('a', 64), null, 2, 2, 5, 3,
    3000, 300, 1000, 0.0123, '2026-03-01 09:00:00+00', null, null),
  ('a0000000-0000-4000-8000-000000000002', '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001', 'reader', 1, 'idle', 'p/m',
    repeat('a', 64), 1, 1, 1, 1, 2, 1500, 60, 0, 0.004, '2026-03-01 09:00:10+00', null, null),
  ('a0000000-0000-4000-8000-000000000003', '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001', 'runner', 1, 'dead', 'p/m',
    repeat('a', 64), 1, 1, 1, 1, 1, 700, 20, 0, 0.002, '2026-03-01 09:00:10+00', '2026-03-01 09:00:50+00', 'a0000000-0000-4000-8000-000000000001');
alter table agentmesh.agents alter column workspace_id drop default;
insert into agentmesh.mail (id, session_id, sender, recipient, body, sent_at, read_at, read_seq) overriding system value values
  (1, '5e550000-0000-4000-8000-000000000001', null, 'a0000000-0000-4000-8000-000000000001', 'Count them.', '2026-03-01 09:00:01+00', '2026-03-01 09:00:01+00', 1),
  (2, '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000002', 'Read a.txt', '2026-03-01 09:00:10+00', '2026-03-01 09:00:11+00', 1),
  (3, '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000003', 'Run it.', '2026-03-01 09:00:10+00', '2026-03-01 09:00:11+00', 1),
  (4, '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000002', 'a0000000-0000-4000-8000-000000000001', 'It has ```3``` lines.', '2026-03-01 09:00:30+00', '2026-03-01 09:00:30+00', 4),
  (5, '5e550000-0000-4000-8000-000000000001', null, 'a0000000-0000-4000-8000-000000000001', 'And again?', '2026-03-01 11:00:00+00', '2026-03-01 11:00:00+00', 9),
  (6, '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000002', 'Later.', '2026-03-01 11:00:18+00', null, null);
insert into agentmesh.transcript (agent_id, seq, kind, content, created_at) values
  ('a0000000-0000-4000-8000-000000000001', 1, 'user', '{"text": "Count them.", "mail_id": 1}', '2026-03-01 09:00:01+00'),
  ('a0000000-0000-4000-8000-000000000001', 2, 'assistant', '{"text": "Two helpers.", "reasoning": "One reads, one runs.", "calls": [{"id": "c1", "name": "fork", "arguments": "{\"name\": \"reader\", \"prompt\": \"Read a.txt\"}"}, {"id": "c2", "name": "fork", "arguments": "{\"name\": \"runner\", \"prompt\": \"Run it.\"}"}, {"id": "c3", "name": "wait", "arguments": "{\"timeout\": 60}"}]}', '2026-03-01 09:00:10+00'),
  ('a0000000-0000-4000-8000-000000000001', 3, 'tool_result', '{"seq": 2, "ordinal": 0, "call_id": "c1", "name": "fork", "result": {"agent_id": "a0000000-0000-4000-8000-000000000002", "name": "reader"}}', '2026-03-01 09:00:10+00'),
  ('a0000000-0000-4000-8000-000000000001', 4, 'tool_result', '{"seq": 2, "ordinal": 2, "call_id": "c3", "name": "wait", "result": {"outcome": "complete", "results": [{"name": "reader", "status": "received", "message": "It has ```3``` lines."}]}}', '2026-03-01 09:00:30+00'),
  ('a0000000-0000-4000-8000-000000000001', 5, 'assistant', '{"text": "", "calls": [{"id": "c4", "name": "bash", "arguments": "{\"command\": \"make all\"}"}, {"id": "c5", "name": "kill", "arguments": "{\"agent_id\": \"runner\"}"}]}', '2026-03-01 09:00:34+00'),
  ('a0000000-0000-4000-8000-000000000001', 6, 'tool_result', '{"seq": 5, "ordinal": 0, "call_id": "c4", "name": "bash", "result": {"error": "refused by the user: no", "hint": "Do something else."}}', '2026-03-01 09:00:48+00'),
  ('a0000000-0000-4000-8000-000000000001', 7, 'tool_result', '{"seq": 5, "ordinal": 1, "call_id": "c5", "name": "kill", "result": {"killed": [{"agent_id": "a0000000-0000-4000-8000-000000000003", "name": "runner"}]}}', '2026-03-01 09:00:50+00'),
  ('a0000000-0000-4000-8000-000000000001', 8, 'error', '{"kind": "model", "error": "The model server failed.", "hint": "/retry goes on."}', '2026-03-01 09:00:54+00'),
  ('a0000000-0000-4000-8000-000000000001', 9, 'user', '{"text": "And again?", "mail_id": 5}', '2026-03-01 11:00:00+00'),
  ('a0000000-0000-4000-8000-000000000001', 10, 'assistant', '{"text": "Three.\n\n| no | table |\n\n# no heading <script>alert(1)</script>"}', '2026-03-01 11:00:20+00'),
  ('a0000000-0000-4000-8000-000000000002', 1, 'mail', '{"text": "Read a.txt", "mail_id": 2, "sender": "a0000000-0000-4000-8000-000000000001", "name": "root"}', '2026-03-01 09:00:11+00'),
  ('a0000000-0000-4000-8000-000000000002', 2, 'assistant', '{"text": "", "calls": [{"id": "r1", "name": "read", "arguments": "{\"path\": \"a.txt\"}"}]}', '2026-03-01 09:00:16+00'),
  ('a0000000-0000-4000-8000-000000000002', 3, 'tool_result', '{"seq": 2, "ordinal": 0, "call_id": "r1", "name": "read", "result": {"text": "one\ntwo\nthree", "lines": 3}}', '2026-03-01 09:00:24+00'),
  ('a0000000-0000-4000-8000-000000000002', 4, 'assistant', '{"text": "It has ```3``` lines."}', '2026-03-01 09:00:30+00'),
  ('a0000000-0000-4000-8000-000000000003', 1, 'mail', '{"text": "Run it.", "mail_id": 3, "sender": "a0000000-0000-4000-8000-000000000001", "name": "root"}', '2026-03-01 09:00:11+00'),
  ('a0000000-0000-4000-8000-000000000003', 2, 'assistant', '{"text": "", "calls": [{"id": "x1", "name": "bash", "arguments": "not json"}]}', '2026-03-01 09:00:16+00'),
  ('a0000000-0000-4000-8000-000000000003', 3, 'tool_result', '{"seq": 2, "ordinal": 0, "call_id": "x1", "name": "bash", "result": {"error": "killed"}}', '2026-03-01 09:00:50+00'),
  ('a0000000-0000-4000-8000-000000000003', 4, 'event', '{"event": "killed", "text": "killed by root"}', '2026-03-01 09:00:50+00');
insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments, status, started_at, ended_at, result_seq) values
  ('a0000000-0000-4000-8000-000000000001', 2, 0, 'c1', 'fork', '{}', 'done', '2026-03-01 09:00:10+00', '2026-03-01 09:00:10+00', 3),
  ('a0000000-0000-4000-8000-000000000001', 2, 2, 'c3', 'wait', '{"timeout": 60}', 'done', '2026-03-01 09:00:30+00', '2026-03-01 09:00:30+00', 4),
  ('a0000000-0000-4000-8000-000000000001', 5, 0, 'c4', 'bash', '{"command": "make all"}', 'done', '2026-03-01 09:00:48+00', '2026-03-01 09:00:48+00', 6),
  ('a0000000-0000-4000-8000-000000000001', 5, 1, 'c5', 'kill', '{}', 'done', '2026-03-01 09:00:50+00', '2026-03-01 09:00:50+00', 7),
  ('a0000000-0000-4000-8000-000000000002', 2, 0, 'r1', 'read', '{"path": "a.txt"}', 'done', '2026-03-01 09:00:24+00', '2026-03-01 09:00:24+00', 3),
  ('a0000000-0000-4000-8000-000000000003', 2, 0, 'x1', 'bash', 'not json', 'done', '2026-03-01 09:00:17+00', '2026-03-01 09:00:50+00', 3);
insert into agentmesh.model_calls (id, agent_id, turn, model, input_tokens, output_tokens, cached_tokens, cost_usd, latency_ms, finish_reason, error, ended_at)
  overriding system value values
  (1, 'a0000000-0000-4000-8000-000000000001', 1, 'p/m', 1000, 100, 0, 0.006, 8000, 'tool_calls', null, '2026-03-01 09:00:10+00'),
  (2, 'a0000000-0000-4000-8000-000000000001', 1, 'p/m', 1000, 100, 500, 0.0063, 3000, 'tool_calls', null, '2026-03-01 09:00:34+00'),
  (3, 'a0000000-0000-4000-8000-000000000001', 1, 'p/m', 0, 0, 0, 0, 3000, null, 'The model server failed.', '2026-03-01 09:00:54+00'),
  (4, 'a0000000-0000-4000-8000-000000000001', 2, 'p/other', 1000, 100, 500, null, 18000, 'stop', null, '2026-03-01 11:00:20+00'),
  (5, 'a0000000-0000-4000-8000-000000000002', 1, 'p/m', 700, 30, 0, 0.002, 5000, 'tool_calls', null, '2026-03-01 09:00:16+00'),
  (6, 'a0000000-0000-4000-8000-000000000002', 1, 'p/m', 800, 30, 0, 0.002, 6000, 'stop', null, '2026-03-01 09:00:30+00'),
  (7, 'a0000000-0000-4000-8000-000000000003', 1, 'p/m', 700, 20, 0, 0.002, 5000, 'tool_calls', null, '2026-03-01 09:00:16+00');
insert into agentmesh.requests (id, session_id, agent_id, seq, ordinal, kind, tool, arguments, asked_at, answer, answered_at, answered_by) values
  ('7e900000-0000-4000-8000-000000000001', '5e550000-0000-4000-8000-000000000001', 'a0000000-0000-4000-8000-000000000001', 5, 0, 'approval', 'bash',
    '{"command": "make all"}', '2026-03-01 09:00:34+00', '{"decision": "no"}', '2026-03-01 09:00:48+00', 'me');
set session_replication_role = origin;
