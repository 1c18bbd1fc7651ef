-- name: keep
-- Store an image in a session; return its digest.
select agentmesh.keep_image(%(session)s, %(media_type)s, %(width)s, %(height)s, %(bytes)s);

-- name: bytes
-- The bytes of images of a session.
select digest, bytes from agentmesh.images where session_id = %(session)s and digest = any (%(digests)s);
