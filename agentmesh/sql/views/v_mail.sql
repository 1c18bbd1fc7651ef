create view agentmesh.v_mail with (security_barrier) as
  select m.id, m.session_id, m.sender, coalesce(s.name, case when m.sender is null and m.about = 'process' then 'process' end, 'user') as sender_name, m.recipient, r.name as recipient_name, m.body, m.automatic,
    m.failed, m.sent_at, m.read_at, m.read_seq, m.withdrawn_at,
    case when m.withdrawn_at is not null then 'withdrawn' when m.read_at is not null then 'read' else 'unread' end as state,
    m.images, m.urgent, m.about, m.reply_to
  from agentmesh.mail m join agentmesh.agents r on r.id = m.recipient left join agentmesh.agents s on s.id = m.sender;

comment on view agentmesh.v_mail is 'All mail with its sender and recipient; sender null is the user, or a process of the recipient (about). state is unread, read or withdrawn; images refers to v_images, null if there are none. urgent mail is read in the middle of a turn. about says of automatic mail that it is no report: merge, process, or task for the result of one in the background. It is halt if the senders turn was ended because another agent halted the work. alarm is a message to oneself, by a timer. reply_to is the mail that it answers, null if there is none.';
