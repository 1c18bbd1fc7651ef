drop function agentmesh.delete_session, agentmesh.end_session, agentmesh.guest, agentmesh.join_agent, agentmesh.start_session, agentmesh.tick, agentmesh.attention, agentmesh.sweep, agentmesh.give_back, agentmesh.claimable,
  agentmesh.claim, agentmesh.serves, agentmesh.release_worker, agentmesh.free_agents, agentmesh.leave, agentmesh.rejoin_worker, agentmesh.join_worker, agentmesh.skip_turn,
  agentmesh.stop_turn, agentmesh.interrupt, agentmesh.interrupt_one, agentmesh.stop, agentmesh.wait_circle, agentmesh.wait_begin, agentmesh.wait_leave, agentmesh.wait_take, agentmesh.heed_interrupt, agentmesh.wait_may_end, agentmesh.take;
drop view agentmesh.open_waits;
drop function agentmesh.wait_look_anyone, agentmesh.wait_look, agentmesh.fail_turn, agentmesh.finish_calls, agentmesh.start_calls,
  agentmesh.finish_step, agentmesh.allowance, agentmesh.ended_with, agentmesh.begin_step, agentmesh.close_calls, agentmesh.book_call, agentmesh.end_turn, agentmesh.read_mail, agentmesh.introduction, agentmesh.lock_with_parent,
  agentmesh.lock_class;
drop type agentmesh.seen;
