-- Search over conversations and mail, and sessions that begin with what an agent of another one had been sent.
-- No index: it would be paid by every step, and read by few (docs/decisions/0019). A search reads a session by the keys that there are.

-- What people see of a row: all its words.
create function agentmesh.said(kind text, content jsonb) returns text
language sql immutable as $$
  select case kind
    when 'assistant' then concat_ws(E'\n', content ->> 'reasoning', content ->> 'text', (
      -- The arguments are JSON in JSON, as the model wrote it: its escapes would hide the word that follows.
      select string_agg(concat_ws(' ', c ->> 'name', regexp_replace(c ->> 'arguments', '\\[bfnrt]', ' ', 'g')), E'\n')
      from jsonb_array_elements(case when jsonb_typeof(content -> 'calls') = 'array' then content -> 'calls' end) c))
    when 'tool_result' then concat_ws(E'\n', content ->> 'name', (
      select string_agg(v #>> '{}', E'\n') from jsonb_path_query(content -> 'result', 'strict $.** ? (@.type() == "string")') v))
    else (select string_agg(v #>> '{}', E'\n') from jsonb_path_query(content - array['event', 'introduces', 'sender', 'by', 'copied'],
                                                                     'strict $.** ? (@.type() == "string")') v)
  end
$$;

-- Words apart from each other. PostgreSQL's parser takes src/parser.py, self.name and <T> for one word or for none.
create function agentmesh.words(text text) returns text
language sql immutable as $$
  select translate(text, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))
$$;

-- What to look for, in a search engine's manner: words, "a phrase", or, -without. What holds words together makes a phrase of them.
create function agentmesh.wanted(query text) returns tsquery
language sql immutable as $$
  select websearch_to_tsquery('simple', regexp_replace(regexp_replace(query,
    '[!#$%&''()*+,./:;<=>?@[\\\]^`{|}~]|--+', '_', 'g'), '(?<=[^\s"])-', '_', 'g'))
$$;

-- The sessions that a search without one looks into: the newest, as far as so many rows of conversations go.
create function agentmesh.search_reach(most_rows bigint default 100000) returns setof uuid
language plpgsql stable security definer set search_path = pg_catalog as $$
declare
  one uuid;
begin
  for one in select s.id from agentmesh.sessions s order by s.created_at desc, s.id loop
    return next one;
    most_rows := most_rows - (
      select coalesce(sum(last.seq), 0) from agentmesh.agents a
      cross join lateral (select max(t.seq) as seq from agentmesh.transcript t where t.agent_id = a.id) last where a.session_id = one);
    exit when most_rows <= 0;
  end loop;
end $$;

-- search: rows of conversations, and mail that is in none (unread or withdrawn), that hold what is looked for; newest first within
-- a session, and without one the newest sessions first. The words stand between «» in the snippet. Changes nothing.
create function agentmesh.search(query text, session uuid default null, agent uuid default null, most integer default 50)
returns table (session_id uuid, agent_id uuid, name text, seq bigint, mail_id bigint, kind text, at timestamptz, snippet text)
language plpgsql stable security definer rows 50
-- No word is too long to be passed over in silence, and to compile a statement would take longer than most searches.
set search_path = pg_catalog set client_min_messages = warning set jit = off as $$
#variable_conflict use_column
declare
  -- PostgreSQL fails at a text with more than a MB of different words: long ones are searched in pieces, each beginning a little before
  -- the end of the last.
  piece constant integer := 50000;
  apart constant text := '[^[:alnum:]]+';
  wanted tsquery;
  tree text;
  words text[];
  marked text;
  one uuid;
  found_now integer;
begin
  if octet_length(query) > 1000 then
    perform agentmesh.refuse('AM004', format('the search is %s bytes long, not up to 1000', octet_length(query)), 'Give some of its words.');
  end if;
  wanted := agentmesh.wanted(query);
  tree := querytree(wanted);
  if tree is null or tree in ('', 'T') then
    perform agentmesh.refuse('AM004', format('there is no word to look for in %s', quote_literal(left(query, 60))),
      'Give one or more words; "a phrase", or, and -without are understood.');
  end if;
  -- A text that holds none of the words (without "or": not all of them) need not be taken apart, which is what takes the time.
  select array_agg('%' || m[1] || '%') into words from regexp_matches(tree, '''([^'']+)''', 'g') m;
  select '(?<![[:alnum:]])(' || string_agg(term, '|') || ')(?![[:alnum:]])' into marked
  from (
    select (select string_agg(m[1], apart) from regexp_matches(part, '''([^'']+)''', 'g') m) as term
    from regexp_split_to_table(tree, '[&|()]') part) terms
  where term is not null;
  most := least(greatest(coalesce(most, 50), 1), 1000);
  if agent is not null then
    session := (select a.session_id from agentmesh.agents a where a.id = agent);
    perform agentmesh.refuse('AM010', format('there is no agent %s', agent), 'agentmesh ps --all lists the agents.') where session is null;
  end if;
  for one in select s from agentmesh.search_reach() s where session is null union all select session where session is not null loop
    return query
      select one, c.agent_id, c.name, c.seq, c.mail_id, c.kind, c.at,
        regexp_replace(regexp_replace(
            case when near.place > 81 then '… ' else '' end
            || translate(substr(hit.text, greatest(near.place - 80, 1), 240), '«»', '""')
            || case when length(hit.text) > greatest(near.place - 80, 1) + 239 then ' …' else '' end,
          marked, '«\1»', 'gi'), '\s+', ' ', 'g')
      from (
        select a.id as agent_id, a.name, t.seq, null::bigint as mail_id, t.kind, t.created_at as at, t.content
        from agentmesh.agents a
        cross join lateral (
          select x.seq, x.kind, x.content, x.created_at from agentmesh.transcript x
          where x.agent_id = a.id
            and case when position('|' in tree) > 0 then lower(x.content::text) like any (words) else lower(x.content::text) like all (words) end
          offset 0) t
        where a.session_id = one and (agent is null or a.id = agent)
        union all
        select a.id, a.name, null, m.id, case when m.withdrawn_at is null then 'unread' else 'withdrawn' end, m.sent_at,
          jsonb_build_object('text', m.body)
        from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id
        where a.session_id = one and (agent is null or a.id = agent) and m.read_at is null
        order by at desc, agent_id, seq desc, mail_id desc
        offset 0) c
      cross join lateral (
        select substr(said.text, n, piece) as text
        from (select agentmesh.said(c.kind, c.content) as text offset 0) said
        cross join generate_series(1, greatest(length(said.text), 1), piece - 500) n
        where to_tsvector('simple', agentmesh.words(substr(said.text, n, piece))) @@ wanted
        order by n limit 1) hit
      cross join lateral (select regexp_instr(hit.text, marked, 1, 1, 0, 'i') as place offset 0) near
      order by c.at desc, c.agent_id, c.seq desc, c.mail_id desc
      limit most;
    get diagnostics found_now = row_count;
    most := most - found_now;
    exit when most <= 0;
  end loop;
end $$;

-- fork_session: begin a session whose root has been told what this agent had been sent at this row, or before the step in which it stands:
-- a copy, so that each of the two sessions can be deleted. Directory, limits, model, tools and permissions are the agent's of now; the
-- mode is "plan" where it was, else "ask", and nothing is allowed for good. With a prompt the root is running from this commit on.
-- Locks: none but the new root's; rows that are there never change. Returns the root.
create function agentmesh.fork_session(agent uuid, at bigint, prompt text default null) returns uuid
language plpgsql as $$
#variable_conflict use_column
declare
  source agentmesh.agents;
  session agentmesh.sessions;
  settings agentmesh.settings;
  upto bigint;
  root uuid;
begin
  perform agentmesh.require_read_committed();
  select * into source from agentmesh.agents a where a.id = fork_session.agent;
  perform agentmesh.require_agent(source, fork_session.agent);
  upto := agentmesh.step_boundary(source, fork_session.at);
  if fork_session.prompt is not null then
    perform agentmesh.require_body(fork_session.prompt);
  end if;
  select * into session from agentmesh.sessions s where s.id = source.session_id;
  select * into settings from agentmesh.settings s where s.id = source.settings_id;
  root := agentmesh.start_session(session.workdir, session.host, session.os_user, source.model, settings.system_prompt, settings.tools,
    format('%s at row %s%s', source.name, upto, coalesce(' of ' || nullif(left(session.title, 120), ''), '')),
    case session.permission_mode when 'plan' then 'plan' else 'ask' end, source.permissions,
    jsonb_build_object('max_depth', session.max_depth, 'max_children', session.max_children, 'max_agents', session.max_agents,
      'max_unread', session.max_unread, 'max_tokens', session.max_tokens, 'max_cost_usd', session.max_cost_usd), session.needs);
  -- Calls come with their rows, done as they are: whatever forks from this history later must know where its steps end.
  -- (A result whose call is behind a summary is no use to anybody; the engine makes no such summary.)
  with context as (select c.n, c.agent_id, c.seq, c.kind, c.content from agentmesh.context(source.id, upto) c),
  sent as (
    select row_number() over (order by c.n, c.seq) as at_seq, c.agent_id, c.seq, c.kind, c.content from context c
    where c.kind <> 'tool_result' or exists (select from context s where s.agent_id = c.agent_id and s.seq = (c.content ->> 'seq')::bigint)),
  written as (
    insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)
    select root, r.at_seq, r.kind,
      -- No mail of this session is shown, nobody of it is introduced, and a summary stands for nothing that is here.
      (r.content - array['mail_id', 'introduces'])
        || case r.kind when 'tool_result' then jsonb_build_object('seq', (
             select s.at_seq from sent s where s.agent_id = r.agent_id and s.seq = (r.content ->> 'seq')::bigint))
           when 'summary' then '{"upto": 0}'::jsonb else '{}'::jsonb end
        || jsonb_build_object('copied', jsonb_build_object('agent_id', r.agent_id, 'seq', r.seq)),
      clock_timestamp()
    from sent r)
  insert into agentmesh.tool_calls (agent_id, seq, ordinal, call_id, name, arguments, status, started_at, ended_at, result_seq)
  select root, r.at_seq, c.ordinal, c.call_id, c.name, c.arguments, c.status, c.started_at, c.ended_at, (
    select s.at_seq from sent s where s.agent_id = r.agent_id and s.seq = c.result_seq)
  from sent r join agentmesh.tool_calls c on c.agent_id = r.agent_id and c.seq = r.seq;
  perform agentmesh.append(root, 'event', jsonb_build_object('event', 'copied', 'agent_id', source.id, 'session_id', source.session_id, 'seq', upto,
    'text', format('above is a copy of what %s of session %s was sent at row %s', agentmesh.label(source), left(source.session_id::text, 8), upto)));
  update agentmesh.agents a set tool_calls = (select count(*) from agentmesh.tool_calls c where c.agent_id = root) where a.id = root;
  if fork_session.prompt is not null then
    perform agentmesh.send(null, root, fork_session.prompt);
  end if;
  return root;
end $$;

-- Who was there at a time, and what the rows that were there by then say of each; parents before their children. No row keeps who was in a
-- wait or a retry that a person began (it counts as idle until its next row), nor who was hidden then and is not hidden now.
create function agentmesh.agents_at(session uuid, at timestamptz)
returns table (id uuid, parent_id uuid, name text, depth integer, status text, activity text, unread bigint, model text, tool_calls bigint,
  tokens bigint, cost_usd numeric, unpriced_calls bigint, last_seq bigint)
language sql stable as $$
  select a.id, a.parent_id, a.name, a.depth, now_is.status,
    case now_is.status
      when 'running' then coalesce(open_calls.names, case when wakes.unread > 0 and coalesce(last.ends, true) then 'queued' else 'thinking' end)
      when 'idle' then case when wakes.unread > 0 then 'holding mail' else '' end
      else '' end,
    wakes.unread, coalesce(calls.model, a.model), done.n, coalesce(calls.tokens, 0), coalesce(calls.cost_usd, 0), coalesce(calls.unpriced, 0),
    coalesce(newest.seq, 0)
  from agentmesh.agents a
  -- The newest row that begins, goes on with or ends a turn.
  left join lateral (
    select t.seq, t.created_at,
      case t.kind
        when 'assistant' then not exists (select from agentmesh.tool_calls c where c.agent_id = t.agent_id and c.seq = t.seq)
        when 'error' then true
        when 'summary' then not coalesce((t.content ->> 'auto')::boolean, false)
        when 'event' then t.content ->> 'event' <> 'compact_asked'
        else false end as ends
    from agentmesh.transcript t
    where t.agent_id = a.id and t.created_at <= agents_at.at
      and (t.kind in ('user', 'mail', 'assistant', 'tool_result', 'summary', 'error')
           or t.kind = 'event' and t.content ->> 'event' in ('interrupted', 'compact_asked', 'held', 'copied'))
    order by t.seq desc limit 1) last on true
  left join lateral (
    select t.seq from agentmesh.transcript t where t.agent_id = a.id and t.created_at <= agents_at.at order by t.seq desc limit 1) newest on true
  -- Mail that came before the end of the turn, and was not read then, wakes nobody.
  cross join lateral (
    select count(*) as unread, count(*) filter (where m.sent_at > coalesce(last.created_at, '-infinity')) as waking
    from agentmesh.mail m
    where m.recipient = a.id and m.sent_at <= agents_at.at and coalesce(m.read_at, m.withdrawn_at, 'infinity') > agents_at.at) wakes
  cross join lateral (
    select case when a.died_at <= agents_at.at then 'dead'
      when not coalesce(last.ends, true) or wakes.waking > 0 and not a.external then 'running'
      else 'idle' end as status) now_is
  cross join lateral (
    select 'tool: ' || string_agg(distinct c.name, ', ') as names
    from agentmesh.tool_calls c join agentmesh.transcript t on t.agent_id = c.agent_id and t.seq = c.seq
    where c.agent_id = a.id and t.created_at <= agents_at.at and coalesce(c.ended_at, 'infinity') > agents_at.at) open_calls
  cross join lateral (
    select count(*) as n from agentmesh.tool_calls c where c.agent_id = a.id and c.ended_at <= agents_at.at) done
  cross join lateral (
    select (array_agg(c.model order by c.id desc))[1] as model, sum(c.input_tokens - c.cached_tokens + c.output_tokens)::bigint as tokens,
      sum(c.cost_usd) as cost_usd, count(*) filter (where c.cost_usd is null) as unpriced
    from agentmesh.model_calls c where c.agent_id = a.id and c.ended_at <= agents_at.at) calls
  where a.session_id = agents_at.session and a.created_at <= agents_at.at
  order by a.created_at, a.id
$$;

-- Rights to what is new; grant_roles (0012) knows what the reader may.
revoke execute on all functions in schema agentmesh from public;
select agentmesh.grant_roles();
