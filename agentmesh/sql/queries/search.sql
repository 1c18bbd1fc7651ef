-- name: search
-- Rows and mail that match a query, the newest first.
select session_id, agent_id, name, seq, mail_id, kind, at, snippet from agentmesh.search(%(query)s, %(session)s, %(agent)s, %(most)s);

-- name: reach
-- How many sessions a search of all looks into, and how many there are.
select (select count(*) from agentmesh.search_reach()) as looked_into, (select count(*) from agentmesh.sessions) as all_of_them;

-- name: patience
-- Set a time limit for the next statements of this transaction.
select set_config('statement_timeout', %(timeout)s, true);
