-- Damage done by hand to the scene of test_checks.py, and the invariant that it breaks, and no other. $name is the id of that agent.

-- breaks: tree_is_whole
update sessions set root_id = '$idle';

-- breaks: tree_is_whole
update agents set depth = 3 where id = '$idle';

-- breaks: nobody_outlives_a_parent
update agents set parent_id = '$dead', depth = 2, forked_at = 0 where id = '$idle';

-- breaks: nobody_outlives_a_parent
update sessions set ended_at = now();

-- breaks: limits_hold
update sessions set max_depth = 0;

-- breaks: limits_hold
update sessions set max_depth = 0, limits_set_at = created_at;

-- breaks: limits_hold
update sessions set max_children = 1;

-- breaks: limits_hold
update sessions set max_living = 1;

-- breaks: rights_only_shrink
update agents set permissions = '[["more"]]' where id = '$idle';

-- breaks: rights_only_shrink
update agents set permissions = case when clean then '[["own"], ["less"]]' else '[["own"], ["user"]]' end::jsonb;

-- breaks: forks_begin_between_steps
update agents set forked_at = 999 where id = '$idle';

-- breaks: forks_begin_between_steps
update agents set forked_at = $root_step where id = '$idle';

-- breaks: transcripts_have_no_gaps
delete from transcript where agent_id = '$busy' and kind = 'mark';

-- breaks: transcripts_have_no_gaps
update transcript set seq = seq + 1 where agent_id = '$marked';

-- breaks: death_is_the_last_row
delete from transcript where agent_id = '$dead' and content ->> 'event' = 'killed';

-- breaks: death_is_the_last_row
insert into transcript select '$idle', max(seq) + 1, 'event', '{"event": "killed"}' from transcript where agent_id = '$idle';

-- breaks: the_dead_do_nothing
update mail set sent_at = now() + interval '1 day' where recipient = '$dead';

-- breaks: the_dead_do_nothing
update mail set read_at = now() + interval '1 day' where recipient = '$dead';

-- breaks: the_dead_do_nothing
update mail set sent_at = now() + interval '1 day' where sender = '$dead';

-- breaks: mail_stays_in_its_session
update mail set session_id = gen_random_uuid() where recipient = '$dead';

-- breaks: read_mail_is_shown
update transcript set content = content || '{"text": "else"}' where agent_id = '$dead' and content ? 'mail_id';

-- breaks: read_mail_is_shown
update transcript set content = jsonb_set(content, '{result,results,0,message}', '"else"')
  where agent_id = '$waited' and content ->> 'name' = 'wait';

-- breaks: shown_mail_is_read_once
insert into transcript select '$marked', (select max(seq) + 1 from transcript where agent_id = '$marked'), kind, content
  from transcript
  where agent_id = '$dead' and content ? 'mail_id';

-- breaks: shown_mail_is_read_once
update mail set read_at = null, read_seq = null where recipient = '$busy' and body = 'second';

-- breaks: shown_mail_is_read_once
update transcript set content = jsonb_insert(content, '{result,results,0}', '{"agent_id": "x", "message": "x"}')
  where agent_id = '$waited' and content ->> 'name' = 'wait';

-- breaks: mail_is_read_in_order
drop index transcript_mail;
with two as (select array_agg(read_seq order by id) as seqs from mail where recipient = '$busy' and body in ('first', 'second')),
  moved as (update mail set read_seq = two.seqs[1] + two.seqs[2] - read_seq from two
    where recipient = '$busy' and body in ('first', 'second'))
update transcript t set content = o.content from transcript o, two
where t.agent_id = '$busy' and o.agent_id = t.agent_id and t.seq = any (two.seqs) and o.seq = two.seqs[1] + two.seqs[2] - t.seq;

-- breaks: idle_has_no_waking_mail
insert into mail (session_id, recipient, body) select session_id, id, 'x' from agents where id = '$idle';

-- breaks: only_running_works
update agents set status = 'idle', worker_id = null where id = '$busy';

-- breaks: only_running_works
insert into wait (waiter, deadline) values ('$idle', now());

-- breaks: turns_add_up
update agents set interrupt_turn = 99 where id = '$idle';

-- breaks: turns_add_up
update agents set ended_seq = 999 where id = '$idle';

-- breaks: turns_add_up
update tool_calls set epoch = 99 where agent_id = '$waited';

-- breaks: turns_add_up
update reservations set epoch = 99;

-- breaks: turns_add_up
update model_calls set turn = 99;

-- breaks: owners_are_alive
update workers set ended_at = now();

-- breaks: owners_are_alive
update workers set session_id = gen_random_uuid();

-- breaks: calls_have_one_result
insert into transcript select agent_id, (select max(seq) + 1 from transcript where agent_id = '$busy'), kind, content
  from transcript
  where agent_id = '$busy' and kind = 'tool_result';

-- breaks: calls_have_one_result
insert into transcript select agent_id, (select max(seq) + 1 from transcript where agent_id = '$busy'), kind,
  content || '{"ordinal": 9}'
  from transcript
  where agent_id = '$busy' and kind = 'tool_result';

-- breaks: calls_have_one_result
update tool_calls set result_seq = 99 where agent_id = '$waited';

-- breaks: calls_have_one_result
update transcript set kind = 'event' where agent_id = '$busy' and kind = 'tool_result';

-- breaks: results_come_before_the_next_answer
insert into transcript select '$busy', max(seq) + 1, 'assistant', '{}' from transcript where agent_id = '$busy';

-- breaks: results_come_before_the_next_answer
update transcript set seq = seq + 100 where agent_id = '$ended' and kind = 'tool_result';
update transcript set seq = seq - 1 where agent_id = '$ended' and seq = (select ended_seq from agents where id = '$ended');
update transcript set seq = seq - 99 where agent_id = '$ended' and kind = 'tool_result';
update tool_calls set result_seq = result_seq + 1 where agent_id = '$ended';
update agents set ended_seq = ended_seq - 1 where id = '$ended';

-- breaks: calls_are_the_models
update transcript set content = content || '{"calls": []}' where agent_id = '$busy' and kind = 'assistant';

-- breaks: calls_are_the_models
update transcript set content = content || '{"calls": [{}]}' where agent_id = '$idle' and kind = 'assistant';

-- breaks: waits_have_their_calls
update wait set ordinal = 77;

-- breaks: waits_have_their_calls
delete from waits;

-- breaks: nobody_waits_in_a_circle
insert into wait (waiter, targets, deadline) values ('$busy', '[{"id": "$waiter"}]', now() + interval '1 day');
insert into waits values ('$busy', '$waiter');

-- breaks: nobody_waits_in_a_circle
insert into wait (waiter, targets, deadline) values ('$helper', '[{"id": "$giver"}]', now() + interval '1 day');
insert into waits values ('$helper', '$giver');

-- breaks: a_person_is_asked
update requests set cancelled_at = now() where agent_id = '$asking';

-- breaks: a_person_is_asked
delete from requests where agent_id = '$asking';

-- breaks: a_person_is_asked
update tool_calls set status = 'started', started_at = now() where agent_id = '$asking';

-- breaks: a_person_is_asked
update requests set answer = '{"decision": "no"}', answered_at = now(), answered_by = 'x' where agent_id = '$asking';
update tool_calls set status = 'open' where agent_id = '$asking';

-- breaks: tasks_are_worked_on
update tasks set ended_at = now(), status = 'completed';

-- breaks: tasks_are_worked_on
update agents set status = 'idle', worker_id = null where clean;

-- breaks: tasks_are_worked_on
update tasks set child = '$busy';

-- breaks: batches_add_up
insert into batches (parent, seq, ordinal, session_id, spec, side, items) select id, 1, 0, session_id, '{}', 1, 1 from agents where id = '$busy';

-- breaks: batches_add_up
insert into batches (parent, seq, ordinal, session_id, spec, side, items, started, running) select id, 1, 0, session_id, '{}', 1, 1, 1, 1 from agents where id = '$busy';
insert into batch_items (parent, seq, ordinal, place, item, state, child) values ('$busy', 1, 0, 1, 'x', 'running', '$idle');

-- breaks: figures_add_up
update agents set model_calls = model_calls + 1 where id = '$idle';

-- breaks: figures_add_up
update agents set tool_calls = tool_calls + 1 where id = '$idle';

-- breaks: budgets_add_up
insert into bookings select session_id, 1, 0 from agents where id = '$idle';

-- breaks: budgets_add_up
update session_usage set cost_usd = cost_usd + 0.5;

-- breaks: everybody_works_in_its_session
update workspaces set state = 'removing' where id = (select workspace_id from agents where id = '$own');

-- breaks: everybody_works_in_its_session
update workspaces set path = '/elsewhere' where kind = 'shared';

-- breaks: everybody_works_in_its_session
update sessions set host = 'elsewhere';

-- breaks: snapshots_are_of_what_happened
update workspaces set head = repeat('f', 40) where kind = 'own';

-- breaks: snapshots_are_of_what_happened
update workspaces set head = null where kind = 'shared';

-- breaks: snapshots_are_of_what_happened
update snapshots set ordinal = 9 where kind = 'call';

-- breaks: snapshots_are_of_what_happened
delete from changes;

-- breaks: snapshots_are_of_what_happened
update agents set lines_added = lines_added + 1 where id = '$own';

-- breaks: a_merge_is_whole_or_absent
delete from changes where snapshot_id = (select id from snapshots where kind = 'merge');
delete from snapshots where kind = 'merge';
update workspaces set head = (select tree from snapshots where workspace_id = workspaces.id order by id desc limit 1) where kind = 'shared';

-- breaks: a_merge_is_whole_or_absent
update merges set state = 'writing', ended_at = null;

-- breaks: a_merge_is_whole_or_absent
update snapshots set workspace_id = (select workspace_id from agents where id = '$own') where kind = 'merge';
update workspaces set head = (select tree from snapshots where workspace_id = workspaces.id order by id desc limit 1) where kind = 'shared';

-- breaks: a_merge_is_whole_or_absent
update merges set is_up = false;

-- breaks: leases_end_with_their_turn
update leases set agent_id = '$idle';

-- breaks: leases_end_with_their_turn
update agents set holds_lease = false;

-- breaks: images_are_stored
update mail set images = '[{"sha256": "none", "name": "shot.png"}]' where sender is not null;

-- breaks: images_are_stored
update transcript set content = content || '{"images": [{"sha256": "none", "name": "shot.png"}]}' where kind = 'user';
