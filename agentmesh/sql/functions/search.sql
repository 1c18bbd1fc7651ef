create function agentmesh.search(query text, session uuid default null, agent uuid default null, most integer default 50)
returns table (session_id uuid, agent_id uuid, name text, seq bigint, mail_id bigint, kind text, at timestamptz, snippet text)
language plpgsql stable security definer rows 50
-- Words that are too long are skipped without a warning. Compiling a statement would take longer than most searches.
set search_path = pg_catalog set client_min_messages = warning set jit = off as $$
#variable_conflict use_column
declare
  -- PostgreSQL fails on a text with more than a MB of different words. So long texts are searched in pieces, each
  -- beginning a little before the end of the last one.
  piece constant integer := 50000;
  wanted tsquery;
  tree text;
  words text[];
  marked text;
  one uuid;
  found_now integer;
begin
  select * into wanted, tree, words, marked from agentmesh.search_terms(query);
  most := least(greatest(coalesce(most, 50), 1), 1000);
  if agent is not null then
    session := (select a.session_id from agentmesh.agents a where a.id = agent);
    perform agentmesh.refuse('AM010', format('there is no agent %s', agent), 'agentmesh ps --all lists the agents.') where session is null;
  end if;
  for one in select s from agentmesh.search_reach() s where session is null union all select session where session is not null loop
    return query
      select one, c.agent_id, c.name, c.seq, c.mail_id, c.kind, c.at,
        agentmesh.snippet(hit.text, near.place, marked)
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

comment on function agentmesh.search is
  'Find matching rows of conversations, and matching mail that no row shows (unread or withdrawn). The newest come first within a session; without a session, the newest sessions come first. The snippet has the found words between «». Changes nothing.';

create function agentmesh.search_terms(query text, out wanted tsquery, out tree text, out words text[], out marked text)
language plpgsql set search_path = pg_catalog as $$
-- tree: the relevant words in their relations. words: patterns; a text must contain one of them (without "or": all)
-- before it is parsed, which is the expensive part. marked: an expression that finds them in a snippet.
declare
  apart constant text := '[^[:alnum:]]+';
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
  select array_agg('%' || m[1] || '%') into words from regexp_matches(tree, '''([^'']+)''', 'g') m;
  select '(?<![[:alnum:]])(' || string_agg(term, '|') || ')(?![[:alnum:]])' into marked
  from (
    select (select string_agg(m[1], apart) from regexp_matches(part, '''([^'']+)''', 'g') m) as term
    from regexp_split_to_table(tree, '[&|()]') part) terms
  where term is not null;
end $$;

comment on function agentmesh.search_terms is
  'Parse a query: what a text must match, and how its words are found and marked. Refuses a query without a word.';

create function agentmesh.snippet(text text, place integer, marked text) returns text
language sql immutable as $$
  select regexp_replace(regexp_replace(
      case when place > 81 then '… ' else '' end
      || translate(substr(text, greatest(place - 80, 1), 240), '«»', '""')
      || case when length(text) > greatest(place - 80, 1) + 239 then ' …' else '' end,
    marked, '«\1»', 'gi'), '\s+', ' ', 'g')
$$;

comment on function agentmesh.snippet is 'The text around a place, on one line, with the found words between «».';

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

comment on function agentmesh.search_reach is 'The sessions that a search without one looks into: the newest, up to so many rows of conversations.';

create function agentmesh.wanted(query text) returns tsquery
language sql immutable as $$
-- Characters that join words make a phrase of them.
  select websearch_to_tsquery('simple', regexp_replace(regexp_replace(query,
    '[!#$%&''()*+,./:;<=>?@[\\\]^`{|}~]|--+', '_', 'g'), '(?<=[^\s"])-', '_', 'g'))
$$;

comment on function agentmesh.wanted is 'Parse a search engine''s query: words, "a phrase", or, -without.';

create function agentmesh.words(text text) returns text
language sql immutable as $$
-- PostgreSQL's parser treats src/parser.py, self.name and <T> as one word or as none.
  select translate(text, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))
$$;

comment on function agentmesh.words is 'The text with its words separated by blanks.';

create function agentmesh.said(kind text, content jsonb) returns text
language sql immutable as $$
  select case kind
    when 'assistant' then concat_ws(E'\n', content ->> 'reasoning', content ->> 'text', (
      -- The arguments are JSON in JSON, as the model wrote it: its escapes would hide the next word.
      select string_agg(concat_ws(' ', c ->> 'name', regexp_replace(c ->> 'arguments', '\\[bfnrt]', ' ', 'g')), E'\n')
      from jsonb_array_elements(case when jsonb_typeof(content -> 'calls') = 'array' then content -> 'calls' end) c))
    when 'tool_result' then concat_ws(E'\n', content ->> 'name', (
      select string_agg(v #>> '{}', E'\n') from jsonb_path_query(content -> 'result', 'strict $.** ? (@.type() == "string")') v))
    else (select string_agg(v #>> '{}', E'\n') from jsonb_path_query(content - array['event', 'introduces', 'sender', 'by', 'copied'],
                                                                     'strict $.** ? (@.type() == "string")') v)
  end
$$;

comment on function agentmesh.said is 'All words that people see of a row.';
