create function agentmesh.keep_settings(system_prompt text, tools jsonb) returns text
language plpgsql security definer
set search_path = pg_catalog as $$
-- The lock keeps them until the caller's agent refers to them: forget_settings passes over locked rows.
declare
  setting text := encode(sha256(convert_to(keep_settings.system_prompt || E'\n' || keep_settings.tools::text, 'UTF8')), 'hex');
begin
  loop
    insert into agentmesh.settings (id, system_prompt, tools) values (setting, keep_settings.system_prompt, keep_settings.tools) on conflict do nothing;
    perform from agentmesh.settings s where s.id = setting for key share;
    if found then
      return setting;
    end if;
  end loop;
end $$;

comment on function agentmesh.keep_settings is 'Return the id of the settings with this prompt and these tools, and store them if they are new. Agents of all sessions share them.';

create function agentmesh.forget_settings(ids text[]) returns integer
language plpgsql security definer
set search_path = pg_catalog set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
-- Two statements: the second one sees agents that were committed while the first one waited for nothing.
declare
  locked text[];
  forgotten integer;
begin
  locked := array(select s.id from agentmesh.settings s where s.id = any (ids) order by s.id for update skip locked);
  delete from agentmesh.settings s where s.id = any (locked) and (select a.id from agentmesh.agents a where a.settings_id = s.id limit 1) is null;
  get diagnostics forgotten = row_count;
  return forgotten;
end $$;

comment on function agentmesh.forget_settings is
  'Delete those of these settings that no agent has: a prompt says what a project is about. Settings that somebody is just giving to an agent stay.';
