drop function agentmesh.task, agentmesh.workers_for, agentmesh.end_tasks_of_dead, agentmesh.end_task, agentmesh.close_task, agentmesh.task_output,
  agentmesh.task_result, agentmesh.task_refusal, agentmesh.task_of;
