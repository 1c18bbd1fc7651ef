create function agentmesh.context(agent uuid, upto bigint default null)
returns table (n integer, agent_id uuid, seq bigint, kind text, content jsonb)
language sql stable rows 1000 as $$
  select s.n, s.agent_id, t.seq, t.kind, t.content
  from agentmesh.spans(context.agent, context.upto) s
  cross join lateral (
    select x.seq, x.kind, x.content from agentmesh.transcript x
    where x.agent_id = s.agent_id and x.seq > s.after and x.seq <= s.through
      and x.kind in ('user', 'assistant', 'tool_result', 'mail', 'summary') and (x.kind = 'summary') = s.is_summary
    offset 0) t
$$;

comment on function agentmesh.context is
  'The rows that an agent''s model is sent, up to a seq of its own: order by n, seq. One look by primary key per stretch: a plain join would read the whole table.';

create function agentmesh.spans(agent uuid, upto bigint default null)
returns table (n integer, agent_id uuid, after bigint, through bigint, is_summary boolean)
language plpgsql stable rows 8 as $$
declare
  link record;
  reset record;
  last bigint;
  least_seq bigint;
  summary bigint;
  is_cleared boolean := false;
begin
  n := 0;
  is_summary := false;
  for link in select l.* from agentmesh.lineage(spans.agent) l order by l.generation loop
    agent_id := link.agent_id;
    last := least(link.upto, case when link.generation = 0 then spans.upto end);
    least_seq := link.after;
    while last > least_seq loop
      select t.seq, t.kind, t.content ->> 'event' as event, (t.content ->> 'upto')::bigint as upto, (t.content ->> 'keep')::bigint as keep
      into reset from agentmesh.transcript t
      where t.agent_id = link.agent_id and t.seq <= last and t.seq > least_seq
        and (t.kind = 'summary' or (t.kind = 'event' and t.content ->> 'event' in ('cleared', 'rewound')))
      order by t.seq desc limit 1;
      after := coalesce(reset.seq, least_seq);
      through := last;
      if after < through then
        n := n - 1;
        return next;
      end if;
      exit when reset.seq is null;
      if reset.kind = 'summary' then
        summary := coalesce(summary, reset.seq);
        least_seq := greatest(least_seq, reset.upto);
        last := reset.seq - 1;
      elsif reset.event = 'rewound' then
        last := reset.keep;
      else
        is_cleared := true;
        exit;
      end if;
    end loop;
    -- A summary before the turns that a fork was made to inherit stands for rows that the fork does not inherit.
    if summary is not null and not (link.begins and link.generation > 0) then
      n := n - 1;
      after := summary - 1;
      through := summary;
      is_summary := true;
      return next;
    end if;
    exit when summary is not null or is_cleared;
  end loop;
end $$;

comment on function agentmesh.spans is
  'The stretches of rows (after, through] that make up what an agent''s model is sent, in order of n. It reads the newest rows first, and no more than the rows that reset. A stretch with is_summary holds only that row; other stretches hold no summary.';

create function agentmesh.summarize(agent uuid, caller agentmesh.caller, content jsonb, usage jsonb, ends boolean) returns text
language plpgsql as $$
-- No call without a result may be behind it. usage, if given, books the call that made the summary; ends: the turn was
-- only for this. One commit. Returns the agent's status.
declare
  me agentmesh.agents;
begin
  select * into me from agentmesh.lock_agents(array[agent]);
  perform agentmesh.fence(me, caller);
  if (content ->> 'upto')::bigint is null or (content ->> 'upto')::bigint not between 0 and (select coalesce(max(t.seq), 0) from agentmesh.transcript t where t.agent_id = me.id) then
    perform agentmesh.refuse('AM004', format('a summary of %s cannot cover up to %s', agentmesh.label(me), coalesce(content ->> 'upto', 'null')), 'Give the seq of a row that it has.');
  elsif exists (select from agentmesh.tool_calls c where c.agent_id = me.id and c.status <> 'done') then
    perform agentmesh.refuse('AM053', format('calls of %s have no result yet', agentmesh.label(me)), 'Finish the step first.');
  end if;
  perform agentmesh.append(me.id, 'summary', content);
  if usage is not null then
    perform agentmesh.book_call(me.id, usage);
  end if;
  perform agentmesh.release_reservation(me.id);
  if ends then
    return agentmesh.end_turn(me, null, null, null, false);
  end if;
  perform pg_notify('session_event_' || me.session_id, 'step ' || me.id);
  return me.status;
end $$;

comment on function agentmesh.summarize is 'Store the summary that an agent''s owner has made: {"text", "upto", "auto", ...}.';

create function agentmesh.compact(agent uuid) returns void
language plpgsql as $$
declare
  me agentmesh.agents := agentmesh.lock_idle(agent);
begin
  if me.external then
    perform agentmesh.refuse('AM063', format('the turns of %s are run by somebody else', agentmesh.label(me)), 'Whoever runs it keeps its context.');
  elsif not exists (
      select from agentmesh.spans(me.id) s
      where not s.is_summary and exists (select from agentmesh.transcript t where t.agent_id = s.agent_id and t.seq > s.after and t.seq <= s.through
                                         and t.kind in ('user', 'assistant', 'tool_result', 'mail'))) then
    perform agentmesh.refuse('AM063', format('there is nothing to compact: %s has no conversation since the last summary or /clear', agentmesh.label(me)),
      'Write to it first.');
  end if;
  perform agentmesh.append(me.id, 'event', jsonb_build_object('event', 'compact_asked', 'text', 'its context is to be compacted'));
  update agentmesh.agents a set status = 'running', turn = a.turn + 1, compact_turn = a.turn + 1, queued_at = clock_timestamp(), agent_wakes = 0 where a.id = me.id;
  perform agentmesh.notify_work(me.session_id);
  perform pg_notify('session_event_' || me.session_id, 'turn ' || me.id);
end $$;

comment on function agentmesh.compact is
  'Have a worker summarize an idle agent''s context; older rows are not sent afterwards. The agent is running meanwhile; mail that is unread by then begins the next turn.';

create function agentmesh.clear(agent uuid) returns bigint
language plpgsql as $$
begin
  return agentmesh.append_and_tell(agentmesh.lock_idle(agent), 'event', jsonb_build_object('event', 'cleared',
    'text', 'cleared: the model is sent nothing of what is above'));
end $$;

comment on function agentmesh.clear is
  'From now on, send the model nothing from before, inherited or not. The agent must be idle. Returns the row''s seq.';

create function agentmesh.mark(agent uuid, label text default null) returns text
language plpgsql as $$
declare
  me agentmesh.agents := agentmesh.lock_living(agent);
  named text := coalesce(nullif(btrim(regexp_replace(mark.label, '[[:space:][:cntrl:]]+', ' ', 'g')), ''),
    (select count(*) + 1 from agentmesh.transcript t where t.agent_id = me.id and t.kind = 'mark')::text);
begin
  if length(named) > 60 then
    perform agentmesh.refuse('AM004', format('the label is %s characters long, not 1 to 60', length(named)), 'Take a shorter one.');
  end if;
  perform agentmesh.append_and_tell(me, 'mark', jsonb_build_object('label', named, 'keep', agentmesh.fork_point(me.id)));
  return named;
end $$;

comment on function agentmesh.mark is
  'Set a mark for rewind to go back to, even while the agent works: then the mark is before the step that has calls without a result. Without a label it gets a number. Returns the label.';

create function agentmesh.marks(agent uuid) returns table (seq bigint, label text)
language plpgsql stable rows 8 as $$
declare
  reset record;
  last bigint := 9223372036854775807;
begin
  loop
    select t.seq, (t.content ->> 'to')::bigint as back_to into reset from agentmesh.transcript t
    where t.agent_id = marks.agent and t.seq <= last and t.kind = 'event' and t.content ->> 'event' in ('cleared', 'rewound')
    order by t.seq desc limit 1;
    return query
      select t.seq, t.content ->> 'label' from agentmesh.transcript t
      where t.agent_id = marks.agent and t.kind = 'mark' and t.seq <= last and t.seq > coalesce(reset.seq, 0) order by t.seq desc;
    exit when reset.back_to is null;
    last := reset.back_to;
  end loop;
end $$;

comment on function agentmesh.marks is
  'The valid marks of an agent, the newest first: its own, since the last clear, without those that were rewound over.';
