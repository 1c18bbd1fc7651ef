-- name: known
-- The content of a file that an agent last saw, itself or by inheritance, and the agent of its session that last wrote
-- the file; nulls if unknown.
select
  (select f.digest
   from agentmesh.lineage(%(agent)s) l
   cross join lateral (
     select x.id, x.digest from agentmesh.file_seen x
     where x.agent_id = l.agent_id and hashtextextended(x.path, 0) = hashtextextended(%(path)s, 0) and x.path = %(path)s and x.seq > l.after and x.seq <= l.upto
     order by x.id desc limit 1) f
   order by l.generation limit 1) as seen,
  w.agent_id as writer, w.name as writer_name, w.digest as written
from agentmesh.agents a
left join lateral (
  select x.agent_id, b.name, x.digest from agentmesh.file_seen x join agentmesh.agents b on b.id = x.agent_id
  where x.session_id = a.session_id and hashtextextended(x.path, 0) = hashtextextended(%(path)s, 0) and x.path = %(path)s and x.wrote
  order by x.id desc limit 1) w on true
where a.id = %(agent)s;

-- name: note_write
-- Record that an agent writes this content, and so has seen it.
insert into agentmesh.file_seen (session_id, agent_id, seq, path, digest, wrote)
select a.session_id, a.id, %(seq)s, %(path)s, %(digest)s, true from agentmesh.agents a where a.id = %(agent)s;
