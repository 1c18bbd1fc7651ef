-- The bytes of images. Rows of mail and transcripts refer to them by digest, so those rows stay small. Forks share them,
-- because they share the rows.
create table agentmesh.images (
  session_id  uuid not null references agentmesh.sessions on delete cascade,
  digest      text not null,
  media_type  text not null check (media_type in ('image/png', 'image/jpeg', 'image/webp')),
  width       integer not null check (width between 1 and 8000),
  height      integer not null check (height between 1 and 8000),
  bytes       bytea not null check (octet_length(bytes) between 1 and 5242880),
  created_at  timestamptz not null default clock_timestamp(),
  primary key (session_id, digest),
  constraint digest_is_of_bytes check (digest = encode(sha256(bytes), 'hex'))
);

-- Images are compressed already.
alter table agentmesh.images alter column bytes set storage external;

alter table agentmesh.mail add column images jsonb check (jsonb_typeof(images) = 'array');   -- references; null: none
