drop view agentmesh.v_requests;
drop function agentmesh.ready, agentmesh.forget_rules, agentmesh.set_attended, agentmesh.judge_again, agentmesh.asking, agentmesh.answer, agentmesh.require_answer, agentmesh.ask,
  agentmesh.cancel_requests;
