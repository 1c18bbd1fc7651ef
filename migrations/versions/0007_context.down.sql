drop function agentmesh.summarize, agentmesh.begin_summary, agentmesh.compact, agentmesh.rewind, agentmesh.mark, agentmesh.clear, agentmesh.lock_idle, agentmesh.marks, agentmesh.context,
  agentmesh.spans;
drop index agentmesh.transcript_marks;
alter table agentmesh.agents drop column compact_turn;
