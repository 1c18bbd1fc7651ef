-- name: clear
-- Send nothing from before; return the row's seq.
select agentmesh.clear(%(agent)s);

-- name: mark
-- Set a mark to go back to; return its label.
select agentmesh.mark(%(agent)s, %(label)s);

-- name: rewind
-- Go back to a mark: send the model its rows again; return its label.
select agentmesh.rewind(%(agent)s, %(label)s);

-- name: rewind_to
-- Go back to a row: send the model the rows of then again; return the row that it goes back to.
select agentmesh.rewind_to(%(agent)s, %(row)s);

-- name: restore
-- Lift the newest rewind; return the row that it had gone back to.
select agentmesh.restore_conversation(%(agent)s);

-- name: undone
-- The newest rewind of an agent that can be lifted, and the row that says that a snapshot undid its files; null if there is none.
select (agentmesh.newest_rewind(%(agent)s)).seq as rewound, (
  select max(t.seq) from agentmesh.transcript t
  where t.agent_id = %(agent)s and t.kind = 'event' and t.content ->> 'event' = 'files_undone' and (t.content ->> 'snapshot')::bigint = %(snapshot)s) as files;

-- name: marks
-- The labels of the marks in force, the newest first.
select label from agentmesh.marks(%(agent)s);

-- name: compact
-- Have a worker make a summary.
select agentmesh.compact(%(agent)s);

-- name: summarize
-- Store the summary that the owner has made; return the agent's status.
select agentmesh.summarize(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(content)s, %(usage)s, %(ends)s);

-- name: begin_summary
-- Reserve the model call for a summary; return the budget's answer.
select agentmesh.begin_summary(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(bytes)s, %(answer)s, %(input_usd)s::numeric, %(output_usd)s::numeric, %(address)s, %(model)s);

-- name: filling
-- The contents of an agent's context: parts in the order in which they are sent, with their rows and bytes.
with sent as (
  select c.n, c.seq, c.kind, c.content, c.agent_id <> %(agent)s as inherited from agentmesh.context(%(agent)s) c),
parts as (
  select 0 as place, 'system prompt' as part, null as tool, 1 as rows, octet_length(s.system_prompt)::bigint as bytes
  from agentmesh.agents a join agentmesh.settings s on s.id = a.settings_id where a.id = %(agent)s
  union all
  select 1, 'tools', null, jsonb_array_length(s.tools), octet_length(s.tools::text)
  from agentmesh.agents a join agentmesh.settings s on s.id = a.settings_id where a.id = %(agent)s
  union all
  select case when inherited then 3 when kind = 'summary' then 2 when kind in ('user', 'mail') then 4 when kind = 'assistant' then 5 else 6 end,
    case when inherited then 'inherited' when kind = 'summary' then 'summary' when kind = 'user' then 'user' when kind = 'mail' then 'mail'
         when kind = 'assistant' then 'assistant' else 'tool results' end,
    case when kind = 'tool_result' and not inherited then content ->> 'name' end, 1,
    case kind
      when 'assistant' then octet_length(coalesce(content ->> 'text', '')) + octet_length(coalesce((content -> 'calls')::text, ''))
        + case when content ? 'reasoning_details' then octet_length((content -> 'reasoning_details')::text)
            when coalesce(content ->> 'reasoning_field', '') <> '' then octet_length(coalesce(content ->> 'reasoning', '')) else 0 end
      when 'tool_result' then octet_length((content -> 'result')::text) + agentmesh.image_bytes(kind, content)
      else octet_length(coalesce(content ->> 'text', '')) + agentmesh.image_bytes(kind, content) end
  from sent)
select part, tool, sum(rows)::bigint as rows, sum(bytes)::bigint as bytes from parts group by place, part, tool order by place, part, bytes desc;
