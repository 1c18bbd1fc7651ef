-- name: send
-- Put one message into a mailbox; the mail's id.
select agentmesh.send(%(sender)s, %(recipient)s, %(body)s, %(key)s, row(%(worker)s, %(epoch)s, %(seq)s, %(ordinal)s, %(note)s)::agentmesh.caller);
