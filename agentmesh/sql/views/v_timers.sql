create view agentmesh.v_timers with (security_barrier) as
  select t.id, t.session_id, t.sender, coalesce(s.name, 'user') as sender_name, t.recipient, r.name as recipient_name, t.body, t.due_at,
    t.every_seconds, t.cron, t.created_at, t.rung, t.mail_id, t.key, t.images,
    case when t.ended_as is not null then t.ended_as when t.held_up then 'mailbox full' else 'pending' end as state, t.ended_at
  from agentmesh.timers t join agentmesh.agents r on r.id = t.recipient left join agentmesh.agents s on s.id = t.sender;

comment on view agentmesh.v_timers is
  'Messages that are due later. cron repeats one by a cron expression in its time zone. sender and recipient are the same for an alarm. images refers to v_images, null if there are none. state is pending, mailbox full (tried again each minute), rung, cancelled or dead (of the recipient or the sender); mail_id is the newest mail that it became.';
