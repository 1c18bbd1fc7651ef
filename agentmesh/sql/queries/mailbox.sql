-- name: send
-- Put one message into a mailbox; return the mail's id.
select agentmesh.send(%(sender)s, %(recipient)s, %(body)s, %(key)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(images)s::jsonb, urgent => %(urgent)s, reply_to => %(reply_to)s);

-- name: addressee
-- The recipient of an answer to this mail if none is given.
select a.id, a.name from agentmesh.addressee(%(sender)s, %(reply_to)s) r (id) join agentmesh.agents a using (id);

-- name: newest_of_agents
-- The newest message that another agent has sent to an agent.
select m.id from agentmesh.mail m where m.recipient = %(agent)s and m.sender is not null and not m.automatic order by m.id desc limit 1;

-- name: send_many
-- Put one message into several mailboxes, or into none; return the recipients and the mails' ids.
select agent_id, name, message_id from agentmesh.send_many(%(sender)s, %(recipients)s::uuid[], %(body)s, %(key)s,
  row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(audience)s, %(around)s, %(urgent)s);

-- name: peek
-- Headers of an agent's unread mail, the oldest first.
select m.id as message_id, m.sender, coalesce(s.name, 'user') as sender_name,
  case when m.automatic then coalesce(m.about::text, 'report') else 'message' end as kind, m.urgent, m.sent_at, octet_length(m.body) as bytes,
  coalesce(jsonb_array_length(m.images), 0) as images, left(m.body, 120) as begins,
  m.reply_to, left(r.body, 80) as answers
from agentmesh.mail m left join agentmesh.agents s on s.id = m.sender left join agentmesh.mail r on r.id = m.reply_to
where m.recipient = %(agent)s and m.read_at is null and m.withdrawn_at is null order by m.id limit %(most)s;

-- name: unread
-- How many unread mails an agent has.
select count(*) from agentmesh.mail m where m.recipient = %(agent)s and m.read_at is null and m.withdrawn_at is null;

-- name: reported
-- Those of these waits (by the row of their result) that took an automatic report of that sender.
select w.waiter, w.seq, w.sender from unnest(%(waiters)s::uuid[], %(seqs)s::bigint[], %(senders)s::uuid[]) as w (waiter, seq, sender)
where exists (select from agentmesh.mail m where m.sender = w.sender and m.recipient = w.waiter and m.read_seq = w.seq and m.automatic);
