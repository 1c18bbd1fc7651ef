create function agentmesh.keep_image(session uuid, media_type text, width integer, height integer, bytes bytea) returns text
language plpgsql as $$
#variable_conflict use_column
declare
  its_digest constant text := encode(sha256(keep_image.bytes), 'hex');
begin
  insert into agentmesh.images (session_id, digest, media_type, width, height, bytes)
  values (keep_image.session, its_digest, keep_image.media_type, keep_image.width, keep_image.height, keep_image.bytes)
  on conflict do nothing;
  return its_digest;
exception
  when foreign_key_violation then
    perform agentmesh.refuse('AM015', format('there is no session %s', keep_image.session), 'agentmesh sessions lists them.');
end $$;

comment on function agentmesh.keep_image is
  'Store the bytes of an image in a session, if they are not there yet; returns their SHA-256. Store it before the row that refers to it.';

create function agentmesh.require_images(session uuid, images jsonb) returns void
language plpgsql as $$
declare
  missing text;
begin
  if require_images.images is null then
    return;
  elsif jsonb_typeof(require_images.images) <> 'array' or jsonb_array_length(require_images.images) not between 1 and 20 then
    perform agentmesh.refuse('AM025', 'the images of a message are a list of 1 to 20 references', 'Send fewer at once.');
  end if;
  select coalesce(r ->> 'name', r ->> 'sha256', '?') into missing from jsonb_array_elements(require_images.images) r
  where not exists (select from agentmesh.images i where i.session_id = require_images.session and i.digest = r ->> 'sha256') limit 1;
  if missing is not null then
    perform agentmesh.refuse('AM025', format('the image %s is not stored in this session', left(missing, 100)), 'Store it first: agentmesh.keep_image.');
  end if;
end $$;

comment on function agentmesh.require_images is 'Refuse references to images that are not stored in the session.';

create function agentmesh.images_of(kind text, content jsonb) returns jsonb
language sql immutable as $$
-- In a transcript a person's message has them, the results of read and of MCP servers' tools, and the user's word that ended a wait.
  select case
    when kind = 'user' then coalesce(content -> 'images', '[]')
    when kind <> 'tool_result' then '[]'::jsonb
    when content ->> 'name' = 'read' or starts_with(content ->> 'name', 'mcp__') then coalesce(content #> '{result,images}', '[]')
    when content ->> 'name' = 'wait' then coalesce(content #> '{result,results,-1,images}', '[]')
    else '[]'::jsonb end
$$;

comment on function agentmesh.images_of is 'The references to images in a row of a transcript, a list.';

create function agentmesh.image_bytes(kind text, content jsonb) returns bigint
language sql immutable as $$
  select coalesce(sum(4 * (r ->> 'tokens')::bigint), 0)::bigint from jsonb_array_elements(agentmesh.images_of(kind, content)) r
$$;

comment on function agentmesh.image_bytes is 'The bytes of text that take as many tokens as the images of a row: four bytes are a token.';

create function agentmesh.copy_images(source uuid, root uuid) returns void
language sql as $$
  insert into agentmesh.images (session_id, digest, media_type, width, height, bytes)
  select a.session_id, i.digest, i.media_type, i.width, i.height, i.bytes
  from agentmesh.images i, agentmesh.agents a
  where i.session_id = copy_images.source and a.id = copy_images.root and exists (
    select from agentmesh.transcript t, jsonb_array_elements(agentmesh.images_of(t.kind, t.content)) r
    where t.agent_id = copy_images.root and r ->> 'sha256' = i.digest)
  on conflict do nothing
$$;

comment on function agentmesh.copy_images is 'Copy the images that the rows of a new root refer to from the session that the rows were copied from.';
