create view agentmesh.v_agents with (security_barrier) as
  select a.session_id, a.id, a.parent_id, a.name, agentmesh.path(a.id) as path, a.depth, a.status,
    case a.status
      when 'running' then coalesce(
        case when a.interrupt_turn = a.turn then 'stopping' end,
        case when h.waiter is not null then 'waiting' end,
        case when a.external then 'external' when a.worker_id is null then 'queued' end,
        case when v.activity like 'task: %' then agentmesh.batch_progress(a.id) end, v.activity, 'thinking')
      when 'idle' then case
        when u.unread > 0 then 'holding mail'
        when a.ended_as <> 'done' then a.ended_as
        else '' end
      else case when a.reaped_at is null then '' else 'reaped' end
    end as activity,
    u.unread, a.subagent_type, a.model, a.turn, a.worker_id, a.epoch, a.external, a.tool_calls, a.model_calls,
    a.input_tokens - a.cached_tokens + a.output_tokens as tokens, a.input_tokens, a.output_tokens, a.cached_tokens,
    case when a.unpriced_calls = 0 or a.cost_usd > 0 then a.cost_usd end as cost_usd, a.unpriced_calls,
    t.tool_calls as tree_tool_calls, t.tokens as tree_tokens,
    case when t.unpriced_calls = 0 or t.cost_usd > 0 then t.cost_usd end as tree_cost_usd,
    s.system_prompt, s.tools, a.permissions, a.forked_at, a.created_at, a.died_at, a.killed_by, a.reaped_at, a.clean,
    a.status = 'idle' and a.unseen as unseen, p.kind as workspace, a.workspace_id, a.lines_added, a.lines_removed, a.silent,
    coalesce(p.kind = 'own' and p.base = p.head, false) and exists (select from agentmesh.merges m where m.source = p.id and m.state = 'done') as merged
  from agentmesh.agents a
  join agentmesh.settings s on s.id = a.settings_id
  left join agentmesh.workspaces p on p.id = a.workspace_id
  left join agentmesh.activity v on v.agent_id = a.id
  left join agentmesh.wait h on h.waiter = a.id
  left join lateral (
    select count(*) as unread from agentmesh.mail m where m.recipient = a.id and m.read_at is null and m.withdrawn_at is null) u on true
  left join lateral (
    select sum(d.tool_calls)::bigint as tool_calls, sum(d.input_tokens - d.cached_tokens + d.output_tokens)::bigint as tokens,
      sum(d.cost_usd) as cost_usd, sum(d.unpriced_calls)::bigint as unpriced_calls
    from agentmesh.subtree(a.id) as member (id) join agentmesh.agents d on d.id = member.id) t on true;

comment on view agentmesh.v_agents is
  'All agents, including dead ones: place in the tree, status, activity (or how the last turn ended, if badly), unread mail, and the usage of the agent and its tree. unseen: no person has seen the end of its last turn. workspace: shared (the session''s directory) or own (a tree of its own); silent: screens fold it away. lines_added and lines_removed: by its calls, as far as snapshots were taken. merged: its own tree has been merged, and nothing new is in it since. tree_ columns are sums over the agent and all its descendants; cost_usd is null if no call had a known price. (Left joins: a query that asks for no unread mail or no sums does not compute them.)';
