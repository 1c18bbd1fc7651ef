create view agentmesh.v_images with (security_barrier) as
  select i.session_id, i.digest, i.media_type, i.width, i.height, octet_length(i.bytes) as size, i.created_at from agentmesh.images i;

comment on view agentmesh.v_images is 'The images that are stored in a session, without their bytes. Rows of mail and transcripts refer to digest.';
