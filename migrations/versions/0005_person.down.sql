drop function agentmesh.set_mode, agentmesh.rename_session, agentmesh.set_settings, agentmesh.set_model, agentmesh.take_back, agentmesh.retry, agentmesh.note,
  agentmesh.fork_captured, agentmesh.cancel_capture, agentmesh.capture, agentmesh.begin_capture, agentmesh.require_capture, agentmesh.remark,
  agentmesh.lock_living, agentmesh.open_capture;
drop index agentmesh.transcript_capture;
