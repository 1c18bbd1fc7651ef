-- name: send
-- Put one message into a mailbox; return the mail's id.
select agentmesh.send(%(sender)s, %(recipient)s, %(body)s, %(key)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller, %(images)s::jsonb);

-- name: reported
-- Those of these waits (by the row of their result) that took an automatic report of that sender.
select w.waiter, w.seq, w.sender from unnest(%(waiters)s::uuid[], %(seqs)s::bigint[], %(senders)s::uuid[]) as w (waiter, seq, sender)
where exists (select from agentmesh.mail m where m.sender = w.sender and m.recipient = w.waiter and m.read_seq = w.seq and m.automatic);
