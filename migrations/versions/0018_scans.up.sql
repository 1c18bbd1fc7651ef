-- What is read of few rows stays so when a table grows or its figures are old.
--
-- PostgreSQL's figures of the mail are those of a moment: where an ANALYZE came while there was none, or while much was unread, walking all mail looks cheaper
-- than its index, and a connection keeps such a plan until the next ANALYZE. With 3,000 old messages `send` read all of them to count the unread, the last look
-- of a fan-in of two 27,000 rows, the begin of a step 12,000.
--
-- A later `create or replace` of one of these functions drops its settings: write them again, also plan_cache_mode of begin_step (0016).

alter function agentmesh.send set enable_seqscan = off set enable_bitmapscan = off;
alter function agentmesh.begin_step set enable_seqscan = off set enable_bitmapscan = off;
alter function agentmesh.end_turn set enable_seqscan = off set enable_bitmapscan = off;
alter function agentmesh.take set enable_seqscan = off set enable_bitmapscan = off;
alter function agentmesh.wait_look set enable_seqscan = off set enable_bitmapscan = off;
alter function agentmesh.wait_look_anyone set enable_seqscan = off set enable_bitmapscan = off;
alter function agentmesh.wait_may_end set enable_seqscan = off set enable_bitmapscan = off;

-- "offset 0": one look into the index for each link. As a join PostgreSQL hashed, in sessions of some hundred agents, all of them for each path: a page of
-- 1,000 took 45 ms, now 22.

-- An agent's place in the tree: its name after those of its ancestors, as in root/reader/helper.
create or replace function agentmesh.path(agent uuid) returns text
language sql stable security definer set search_path = pg_catalog as $$
  with recursive above (parent_id, path) as (
    select a.parent_id, a.name from agentmesh.agents a where a.id = agent
    union all
    select p.parent_id, p.name || '/' || above.path from above cross join lateral (
      select a.parent_id, a.name from agentmesh.agents a where a.id = above.parent_id offset 0) p)
  select path from above where parent_id is null
$$;

-- The few rows of a transcript that are no part of the conversation, one index for all that look for some of them: each index costs every row that is
-- appended, also where its predicate leaves the row out. Three of five became one: 16 writers append 7 % more rows.
drop index agentmesh.transcript_resets;
drop index agentmesh.transcript_capture;
drop index agentmesh.transcript_marks;
create index transcript_events on agentmesh.transcript (agent_id, seq) where kind in ('summary', 'event', 'mark');
