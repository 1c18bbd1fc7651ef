-- name: standing
-- The state of an agent that its owner continues; no row if the owner has lost it.
select w.path, s.workdir as project, w.id as workspace_id, w.kind, w.state, w.repository, w.host, agentmesh.allowance(s.id) as allowance, coalesce(a.interrupt_turn = a.turn, false) as interrupted,
  (select extract(epoch from h.deadline - clock_timestamp())::double precision from agentmesh.wait h where h.waiter = a.id) as wait_left,
  exists (select from agentmesh.tool_calls c where c.agent_id = a.id and c.status <> 'done') as in_step,
  coalesce(a.compact_turn = a.turn, false) as compacting
from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id join agentmesh.workspaces w on w.id = a.workspace_id
where a.id = %(agent)s and a.status = 'running' and a.worker_id = %(worker)s and a.epoch = %(epoch)s;

-- name: begin_step
-- Write results of the step before, read due mail, reserve the model call; return own rows after a seq, and what the
-- budget allows.
select agentmesh.begin_step(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(after)s, %(results)s, %(bytes)s, %(answer)s, %(input_usd)s::numeric, %(output_usd)s::numeric, %(address)s, %(model)s);

-- name: finish_step
-- Store the model's answer, its calls and its usage; without calls the turn ends.
select agentmesh.finish_step(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(content)s, %(calls)s, %(usage)s);

-- name: finish_step_once
-- The same, unless it was already done since the newest row that the model was sent: so it may be repeated if its
-- outcome is unknown.
select agentmesh.finish_step_once(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(after)s, %(content)s, %(calls)s, %(usage)s);

-- name: start_calls
-- Mark calls as started.
select agentmesh.start_calls(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(ordinals)s);

-- name: finish_calls
-- Write the results of calls.
select agentmesh.finish_calls(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(results)s);

-- name: fail_turn
-- End the turn with an error.
select agentmesh.fail_turn(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(error)s, %(usage)s);

-- name: stop_turn
-- End an interrupted turn, and keep the streamed part of its answer.
select agentmesh.stop_turn(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(partial)s, %(usage)s);

-- name: skip_turn
-- End a turn that has nothing to answer.
select agentmesh.skip_turn(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);

-- name: book_call
-- Book a model call whose answer is not kept.
select agentmesh.book_lost_call(%(agent)s, %(usage)s);

-- name: reserve_retry
-- Reserve another attempt of a model call, if there is room for it.
select agentmesh.reserve_retry(%(agent)s, %(epoch)s, %(model)s, %(tokens)s, %(usd)s::numeric, %(unpriced)s, %(all_tokens)s, %(all_usd)s::numeric);

-- name: open_calls
-- Calls of an agent without a result, in the order asked.
select c.seq, c.ordinal, c.call_id, c.name, c.arguments, c.status, r.answer as approval,
  r.id is not null and r.answered_at is null and r.cancelled_at is null as asked,
  r.covers is not null as is_fan_out,
  exists (select from agentmesh.requests f where f.agent_id = c.agent_id and f.seq = c.seq and f.covers is not null and f.answered_at is not null) as may_fan_out,
  coalesce(t.content ->> 'finish_reason' in ('length', 'limit') and c.ordinal = jsonb_array_length(t.content -> 'calls') - 1, false) as cut
from agentmesh.tool_calls c
join agentmesh.transcript t on t.agent_id = c.agent_id and t.seq = c.seq
left join agentmesh.requests r on r.agent_id = c.agent_id and r.seq = c.seq and r.ordinal = c.ordinal
where c.agent_id = %(agent)s and c.status <> 'done' order by c.seq, c.ordinal;

-- name: ready
-- Those of these agents, which wait for a person or a sub-agent, that can go on.
select id from unnest(%(agents)s::uuid[]) as waiting (id) where agentmesh.ready(id);

-- name: ask
-- Ask a person about calls of a step; settle requests that a mode or a rule covers by now; drop those that nobody is
-- there to answer.
select agentmesh.ask(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(judged)s, %(asked)s, %(settled)s, %(dropped)s);

-- name: task
-- Hand a call to a sub-agent; return its id.
select agentmesh.task(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(spec)s);

-- name: report
-- End the agent's task with this result, or count a miss; return the agent's status.
select agentmesh.report(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(result)s, %(refusal)s, %(check_exit)s);

-- name: halt
-- Take the agent's report, and end the turns of those above it and of all that work for these; return the agent's status.
select agentmesh.halt(%(agent)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(result)s);

-- name: task_giver
-- The limits of the sub-agents of an agent's tasks, and where they work if nobody says otherwise, as workspace_of_child decides it.
select a.depth, s.max_depth, a.model, a.permissions, t.tools,
  case when s.workspace = 'own' and (w.repository is not null or w.problem is null) then 'own' else 'shared' end as workspace
from agentmesh.agents a join agentmesh.sessions s on s.id = a.session_id join agentmesh.settings t on t.id = a.settings_id
join agentmesh.workspaces w on w.session_id = a.session_id and w.kind = 'shared' where a.id = %(agent)s;
